"""Stage `rejection_sampling`: a data set of the policy's own right completions, for a later stage `sft`.

    python -m recipes.stages rejection_sampling --config '{"task": …, "template": …, "args": …}' \\
        --input policy=results/…/metrics.json …

Its product is `final/data.jsonl`: prompt, completion, question, answer and difficulty of each completion
kept. A stage with `needs: {data: <this stage>}` reads it. A killed run starts again, and ends with the same
bits.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipes import worlds
from recipes.data import demonstrations, prompts
from recipes.errors import UserError
from recipes.rewards import rules
from recipes.runtime import health, provenance
from recipes.runtime.progress import Progress
from recipes.sampling.draw import FORMULA, DrawingConfig, at_least_one, draw
from recipes.stages.outcome import Outcome
from recipes.stages.policy import locate_policy
from recipes.stages.trainer_config import plain
from recipes.trainers.completions import CompletionsLog

# Below a tenth, the data are of the easiest problems only.
COVERED = 0.10


@dataclass(frozen=True)
class RejectionSamplingConfig(DrawingConfig):
    """`args` of this stage."""

    max_per_problem: int | None = None  # right completions of a problem to keep, the first ones; None: all

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("max_per_problem", self.max_per_problem)


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> Outcome:
    """Sample, and save what is right in `workdir`/final; every completion goes to completions.jsonl."""
    began = time.perf_counter()
    args: RejectionSamplingConfig = plain(RejectionSamplingConfig, config["args"])
    world = worlds.of_task(config["task"])
    (accuracy,) = rules.build(["accuracy"], world, seed)
    source, tokenizer = locate_policy(config, inputs)
    problems = prompts.of_task(config["task"], config["template"], config.get("problems"), seed).to_list()
    checks = health.stop_at_errors(
        health.before_sampling(config, inputs.get("policy"), tokenizer, problems, {"accuracy": accuracy})
    )
    rows = [row for row in problems for _ in range(args.num_generations)]
    drawn = draw([row["prompt"] for row in problems], args, source, tokenizer, config, seed, progress)
    completions = drawn.completions
    scores = health.score(accuracy, rows, [str(text) for text in completions])
    right = [score == 1.0 for score in scores]
    kept = keep(completions, right, args.num_generations, args.max_per_problem)

    log = CompletionsLog(out.with_name("completions.jsonl"))
    log.cut(0)  # what a killed run has left
    log.append(
        [
            {
                "step": 0,
                **{key: row[key] for key in ("prompt", "answer", "difficulty")},
                "completion": str(text),
                "tokens": text.tokens,
                "eos": not text.truncated,
                "reward": score,
                "rewards": {"accuracy": score},
                "kept": i in kept,
            }
            for i, (row, text, score) in enumerate(zip(rows, completions, scores, strict=True))
        ],
        args.num_generations,
    )
    log.flush()
    log.close()
    if not kept:
        raise UserError(
            f"none of {len(completions)} completions is right: there is nothing to train on; more "
            "num_generations, easier problems or a better policy would help"
        )
    chosen = [rows[i] | {"completion": str(completions[i])} for i in sorted(kept)]
    demonstrations.save(chosen, workdir / "final")

    metrics = summary(problems, completions, right, kept)
    covered = metrics["problems/covered"]
    text = f"{covered:.1%} of {len(problems)} problems have a right completion"
    checks += [
        health.truncated(metrics["truncation_rate"]),
        health.check("covered", covered >= COVERED, covered, COVERED, text),
    ]
    return Outcome(
        metrics=metrics,
        health=checks,
        fit=provenance.untrained(drawn.tokens, began),
        flops_a_token=2 * drawn.parameters,
        formula=FORMULA,
    )


def keep(completions: Sequence[Any], right: Sequence[bool], size: int, most: int | None) -> set[int]:
    """Indices of the completions to keep: right, not cut, and unlike those kept before of the same problem.

    The `size` completions of each problem lie one after another; at most `most` of them are kept.
    """
    kept: set[int] = set()
    for start in range(0, len(completions), size):
        seen: set[str] = set()
        for i in range(start, start + size):
            text = str(completions[i])
            full = most is not None and len(seen) >= most
            if right[i] and not completions[i].truncated and text not in seen and not full:
                seen.add(text)
                kept.add(i)
    return kept


def summary(
    problems: Sequence[Any], completions: Sequence[Any], right: Sequence[bool], kept: set[int]
) -> dict[str, float]:
    """What the sampling gave: shares, counts, and the mean length in tokens of what was kept."""
    size = len(completions) // len(problems)
    return {
        "accuracy": sum(right) / len(right),
        "truncation_rate": sum(text.truncated for text in completions) / len(completions),
        "problems": len(problems),
        "problems/covered": len({i // size for i in kept}) / len(problems),
        "samples": len(completions),
        "kept": len(kept),
        "kept/share_of_right": len(kept) / sum(right),
        "length/kept": sum(completions[i].tokens for i in kept) / len(kept),
    }
