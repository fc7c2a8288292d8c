"""Stage `policy_gradient`: REINFORCE from first principles (CS336, lecture 17), a loop in plain torch.

    python -m recipes.stages.policy_gradient --config '{"task": …, "template": …, "rewards": …, "args": …}' \\
        --input policy=results/…/metrics.json …

`args` are the fields of PolicyGradientConfig. It takes seconds, so it has no checkpoints: a run that was
killed starts again at step 0, and ends with the same bits.
"""

import copy
import sys
import time
from pathlib import Path
from typing import Any

from recipes.runtime import curves, files, health, provenance
from recipes.runtime.progress import Progress
from recipes.stages import cli
from recipes.stages.arguments import plain

FORMULA = (
    "parameters x tokens of prompts and completions x (2 generation + 2 old log-probabilities + 2 reference"
    " + 6 per inner step)"
)


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> dict[str, Any]:
    """Train and save the policy under `workdir`/final; curve.csv and completions.jsonl beside `out`."""
    import torch

    from recipes import worlds
    from recipes.data import prompts
    from recipes.models import language_model
    from recipes.rewards import rules
    from recipes.trainers.completions import CompletionsLog
    from recipes.trainers.reinforce import PolicyGradientConfig, Rollout, train

    started, began = provenance.now(), time.perf_counter()
    args: PolicyGradientConfig = plain(PolicyGradientConfig, config["args"])
    # accuracy is always measured, so that curves of arms with other rewards can be compared
    weights = {"accuracy": 0.0, **config["rewards"]}
    world = worlds.of_task(config["task"])
    functions = dict(zip(weights, rules.build(weights, world, seed), strict=True))
    source = language_model.locate(config.get("model"), inputs.get("policy"))
    tokenizer = language_model.load_tokenizer(source)
    model = language_model.load(source).to("cuda" if torch.cuda.is_available() else "cpu")
    generation = copy.deepcopy(model.generation_config)
    problems = prompts.load(config["task"], config["template"], config.get("problems"), seed).to_list()
    longest = max(len(ids) for ids in tokenizer([row["prompt"] for row in problems])["input_ids"])
    positions = getattr(model.config, "max_position_embeddings", None)
    checks = health.stop_at_errors(
        [
            health.enough_prompts(len(problems), args.prompts_per_epoch),
            health.context(longest, args.max_completion_length, positions),
            *health.before_sampling(config, inputs.get("policy"), tokenizer, problems, functions),
        ]
    )

    history: list[dict[str, Any]] = []
    log = CompletionsLog(out.with_name("completions.jsonl"))
    log.cut(0)  # what a killed run has left
    total = args.epochs * args.inner_steps

    def report(entry: dict[str, Any], rollout: Rollout) -> None:
        history.append(entry)
        rows = completions(entry["step"] - args.inner_steps + 1, rollout, tokenizer.eos_token_id)
        ended = sum(row["eos"] for row in rows) / len(rows)
        entry["completions/clipped_ratio"] = 1 - ended
        log.append(rows, args.num_generations)
        progress.step(entry["step"], total, entry, entry["num_tokens"])

    progress.start(0, total)
    train(model, tokenizer, problems, functions, weights, args, seed, report)
    log.flush()
    log.close()
    language_model.save(model, tokenizer, workdir / "final", generation)

    curve = curves.rows(history)
    scalars = curves.scalars(curve)
    files.write(out.with_name("curve.csv"), curves.text(curve))
    done = provenance.Fit(history, total, int(history[-1]["num_tokens"]), time.perf_counter() - began, 0)
    parameters = model.num_parameters()
    return {
        "metrics": {**scalars, "parameters": parameters},
        "health": checks + health.training(curve, scalars),
        "provenance": provenance.record(started, done, (6 + 6 * args.inner_steps) * parameters, FORMULA),
        "clean": lambda: None,
    }


def completions(step: int, rollout: Any, end: int) -> list[dict[str, Any]]:
    """The rows of completions.jsonl: one a response."""
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
            "eos": ids[-1] == end,
            "reward": reward,
            "rewards": {name: values[i] for name, values in rollout.values.items()},
            "advantage": delta,
        }
        for i, (problem, text, ids, reward, delta) in enumerate(columns)
    ]


if __name__ == "__main__":
    sys.exit(cli.main("policy_gradient", run))
