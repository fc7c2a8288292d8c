"""Stage `rejection_sampling`: a data set of the policy's own right completions, for a later stage `sft`.

    python -m encore.stages rejection_sampling --config '{"task": …, "template": …, "args": …}' \\
        --input policy=results/…/metrics.json …

`keep` keeps only the right completions that have at least these values of some rewards of the world, as in
stage 3 of DeepSeek-R1 (arXiv 2501.12948, §2.3.3), which filters out mixed languages and text that is hard to
read:

    keep: {language_consistency: 1.0, readability: 0.8}

metrics.json has the number of completions that pass each filter (encore/sampling/funnel.py). The product is
`final/data.jsonl`: prompt, completion, question, answer and difficulty of each completion kept. A stage with
`needs: {data: <this stage>}` reads it. A killed run starts again, and ends with the same bits.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encore.data import demonstrations, forms, prompts
from encore.errors import UserError
from encore.learning.completions import CompletionsLog
from encore.recipe.kinds import RejectionSamplingStage
from encore.rewards import rules, verifiers
from encore.runtime import health, reward_checks
from encore.sampling import funnel
from encore.sampling.completion import Completion
from encore.sampling.draw import FORMULA, draw
from encore.stages.job import Job
from encore.stages.outcome import Outcome, untrained
from encore.stages.policy import locate_policy

# if fewer problems have a right completion, the data come from the easiest problems only
COVERED = 0.10


def run(stage: RejectionSamplingStage, job: Job) -> Outcome:
    """Sample, and save the completions that pass the filters; every completion goes to completions.jsonl."""
    began = time.perf_counter()
    args, task, thresholds = stage.args, stage.questions, stage.keep
    names = ["accuracy", *sorted(thresholds)]
    built = rules.build(names, task.make_world(), job.seed, verifies=task.verifies)
    rewards = dict(zip(names, built, strict=True))
    source, tokenizer = locate_policy(stage, job.inputs)
    form = forms.of(stage.form, tokenizer)
    dataset, left_out, long = prompts.of_part(
        stage, form, tokenizer, job.seed, job.evaluated, stage.longest_prompt
    )
    problems = dataset.to_list()
    accuracy = {"accuracy": rewards["accuracy"]}
    checks = left_out + health.stop_at_errors(
        reward_checks.before_sampling(
            stage.put,
            job.inputs.get("policy"),
            tokenizer,
            problems,
            accuracy,
            verifiers.answer_suffices(stage.questions),
        )
    )
    rows = [row for row in problems for _ in range(args.num_generations)]
    drawn = draw([row["prompt"] for row in problems], args, source, form.ends, stage, job.seed, job.progress)
    texts = [str(text) for text in drawn.completions]
    scores: dict[str, Any] = {
        name: reward_checks.score(reward, rows, texts) for name, reward in rewards.items()
    }
    passed = funnel.passed(drawn.completions, scores, thresholds, args.num_generations, args.max_per_problem)
    kept = passed["kept"]
    log(job.out.with_name("completions.jsonl"), rows, drawn.completions, scores, kept, args.num_generations)
    if not kept:
        raise UserError(funnel.emptied(passed, thresholds))
    demonstrations.save([rows[i] | {"completion": texts[i]} for i in kept], job.workdir / "final")

    metrics = summary(drawn.completions, scores["accuracy"], kept, args.num_generations)
    metrics |= funnel.metrics(passed, args.num_generations)
    metrics |= {} if long is None else {"skipped/long": long}
    covered = metrics["problems/covered"]
    text = f"{covered:.1%} of {len(problems)} problems have a {'kept' if thresholds else 'right'} completion"
    checks += [
        health.truncated(metrics["truncation_rate"]),
        health.make_check("covered", covered >= COVERED, covered, COVERED, text),
    ]
    return untrained(metrics, checks, drawn.tokens, drawn.parameters, FORMULA, began)


def log(
    path: Path,
    rows: Sequence[dict[str, Any]],
    completions: Sequence[Completion],
    scores: dict[str, Sequence[float]],
    kept: Sequence[int],
    size: int,
) -> None:
    """Write every completion to `path`, with its scores and whether its index is in `kept`.

    `size`: the number of completions of each prompt.
    """
    chosen = {*kept}
    file = CompletionsLog(path)
    file.cut(0)  # removes what a killed run has left
    file.append(
        [
            {
                "step": 0,
                "prompt": row["prompt"],
                "answer": row["answer"],
                "difficulty": row["difficulty"],
                "completion": str(text),
                "tokens": text.tokens,
                "eos": not text.truncated,
                "reward": scores["accuracy"][i],
                "rewards": {name: values[i] for name, values in scores.items()},
                "kept": i in chosen,
            }
            for i, (row, text) in enumerate(zip(rows, completions, strict=True))
        ],
        size,
    )
    file.flush()
    file.close()


def summary(
    completions: Sequence[Completion], accuracy: Sequence[float], kept: Sequence[int], size: int
) -> dict[str, float]:
    """Return shares and counts of the completions, and the mean length in tokens of the kept ones.

    `kept`: indices of the kept completions. `size`: the number of completions of each prompt.
    """
    problems = len(completions) // size
    right = sum(score == 1.0 for score in accuracy)
    return {
        "accuracy": right / len(completions),
        "truncation_rate": sum(text.truncated for text in completions) / len(completions),
        "problems": problems,
        "problems/covered": len({i // size for i in kept}) / problems,
        "samples": len(completions),
        "kept": len(kept),
        "kept/share_of_right": len(kept) / right,
        "length/kept": sum(completions[i].tokens for i in kept) / len(kept),
    }
