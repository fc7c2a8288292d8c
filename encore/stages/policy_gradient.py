"""Stage `policy_gradient`: REINFORCE from first principles (CS336, lecture 17), a loop in plain torch.

    python -m encore.stages policy_gradient --config '{"task": …, "template": …, "rewards": …, "args": …}' \\
        --input policy=results/…/metrics.json …

The stage takes seconds, so it has no checkpoints: a killed run starts again at step 0, and ends with the same
bits.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from transformers import TrainingArguments

from encore.data import forms, prompts
from encore.data.token_ids import end_ids
from encore.learning import tracking
from encore.learning.completions import CompletionsLog, Record
from encore.learning.reinforce import Rollout, train
from encore.models.experts import idle
from encore.models.language_model import device
from encore.recipe.kinds import PolicyGradientStage
from encore.rewards import rules
from encore.runtime import curves, health, live_curve
from encore.runtime import tracking as tracked
from encore.runtime.provenance import Fit
from encore.stages.job import Job
from encore.stages.outcome import Outcome
from encore.stages.policy import load_policy
from encore.stages.setup import before_rollouts

FORMULA = (
    "parameters x tokens of prompts and completions x (2 generation + 2 old log-probabilities + 2 reference"
    " + 6 per inner step)"
)


def run(stage: PolicyGradientStage, job: Job) -> Outcome:
    """Train the policy and save it; completions.jsonl goes beside metrics.json."""
    began = time.perf_counter()
    args, task, workdir = stage.args, stage.questions, job.workdir
    # accuracy is always measured, so that curves of arms with other rewards can be compared
    weights = {"accuracy": 0.0, **(stage.rewards or {})}
    built = rules.build(weights, task.make_world(), job.seed, verifies=task.verifies)
    functions = dict(zip(weights, built, strict=True))
    policy = load_policy(stage, job.inputs)
    model = policy.model.to(device())
    form, ends = forms.of(stage.form, policy.tokenizer), end_ids(policy.generation, policy.tokenizer)
    problems = prompts.of_task(task, form, stage.problems, job.seed).to_list()
    needed, cap = args.prompts_per_epoch, args.max_completion_length
    checks = before_rollouts(stage, job, policy, problems, functions, needed, cap)

    history: list[dict[str, Any]] = []
    log = CompletionsLog(job.out.with_name("completions.jsonl"))
    log.cut(0)  # removes what a killed run has left
    total = args.epochs * args.inner_steps

    def report(entry: dict[str, Any], rollout: Rollout) -> None:
        history.append(entry)
        rows = completions(entry["step"] - args.inner_steps + 1, rollout, ends)
        ended = sum(row["eos"] for row in rows) / len(rows)
        entry["completions/clipped_ratio"] = 1 - ended
        log.append(rows, args.num_generations)
        live_curve.add(workdir, entry)
        tell(entry)
        job.progress.step(entry["step"], total, entry, entry["num_tokens"])

    live_curve.begin(workdir, [])
    job.progress.start(0, total, curve=live_curve.path(workdir))
    tracker: Any = tracked.arguments()
    followed = TrainingArguments(str(workdir), seed=job.seed, use_cpu=True, **tracker)
    with tracking.reporting(followed, model, total) as tell:
        train(model, policy.tokenizer, problems, functions, weights, args, job.seed, report)
    log.flush()
    log.close()
    policy.save(workdir)

    curve = curves.rows(history)
    scalars = curves.scalars(curve)
    parameters = model.num_parameters()
    return Outcome(
        metrics={**scalars, "parameters": parameters},
        health=checks + health.training(curve, scalars, "full"),
        fit=Fit(history, total, int(history[-1]["num_tokens"]), time.perf_counter() - began, 0),
        flops_a_token=(6 + 6 * args.inner_steps) * (parameters - idle(model)),
        formula=FORMULA,
        curve=curve,
        clean=partial(live_curve.path(workdir).unlink, missing_ok=True),
    )


def completions(step: int, rollout: Rollout, ends: Sequence[int]) -> list[Record]:
    """Return the rows of completions.jsonl, one for each response.

    `ends` are the tokens that end a sequence.
    """
    columns = zip(
        rollout.problems,
        rollout.texts,
        rollout.responses,
        rollout.rewards.flatten().tolist(),
        rollout.deltas.tolist(),
        strict=True,
    )
    return [
        {
            "step": step,
            "prompt": problem["prompt"],
            "completion": text,
            "answer": problem["answer"],
            "difficulty": problem["difficulty"],
            "tokens": len(ids),
            "eos": ids[-1] in ends,
            "reward": reward,
            "rewards": {name: values[i] for name, values in rollout.values.items()},
            "advantage": delta,
        }
        for i, (problem, text, ids, reward, delta) in enumerate(columns)
    ]
