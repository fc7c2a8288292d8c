"""Stage `rejection_sampling`: a data set of the policy's own right completions, for a later stage `sft`.

    python -m recipes.stages.rejection_sampling --config '{"task": …, "template": …, "args": …}' \\
        --input policy=results/…/metrics.json …

Its product is `final/data.jsonl`: prompt, completion, question, answer and difficulty of each completion
kept. A stage that has `needs: {data: <this stage>}` reads it. A run that was killed starts again, and ends
with the same bits.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipes.errors import UserError
from recipes.runtime import curves, files, health, provenance
from recipes.runtime.progress import Progress
from recipes.sampling.draw import FORMULA, DrawingConfig, at_least_one, draw
from recipes.stages import cli
from recipes.stages.arguments import plain

# Below a tenth, the data are of the easiest problems alone.
COVERED = 0.10


@dataclass(frozen=True)
class RejectionSamplingConfig(DrawingConfig):
    """`args` of this stage."""

    max_per_problem: int | None = None  # kept of a problem's right completions, the first so many; None: all

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("max_per_problem", self.max_per_problem)


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> dict[str, Any]:
    """Sample, and write what is right to `workdir`/final; every completion to completions.jsonl."""
    from recipes import worlds
    from recipes.data import demonstrations, prompts
    from recipes.models import language_model
    from recipes.rewards import rules
    from recipes.trainers.completions import CompletionsLog

    started, began = provenance.now(), time.perf_counter()
    args: RejectionSamplingConfig = plain(RejectionSamplingConfig, config["args"])
    world = worlds.of_task(config["task"])
    (accuracy,) = rules.build(["accuracy"], world, seed)
    source = language_model.locate(config.get("model"), inputs.get("policy"))
    tokenizer = language_model.load_tokenizer(source)
    problems = prompts.load(config["task"], config["template"], config.get("problems"), seed).to_list()
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

    measured = summary(problems, completions, right, kept)
    checks += [
        health.truncated(measured["truncation_rate"]),
        health.check(
            "covered",
            measured["problems/covered"] >= COVERED,
            measured["problems/covered"],
            COVERED,
            f"{measured['problems/covered']:.1%} of {len(problems)} problems have a right completion",
            "warning",
        ),
    ]
    files.write(out.with_name("curve.csv"), curves.text([]))  # nothing is learnt
    done = provenance.Fit([], 0, drawn.tokens, time.perf_counter() - began, 0)
    return {
        "metrics": measured,
        "health": checks,
        "provenance": provenance.record(started, done, 2 * drawn.parameters, FORMULA),
        "clean": lambda: None,
    }


def keep(completions: Sequence[Any], right: Sequence[bool], size: int, most: int | None) -> set[int]:
    """Indices of the completions kept; `size` of each problem lie one after another.

    Those that are right, came to their end, and differ from those kept before of the same problem; at most
    `most` of a problem.
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
    """What the sampling gave: shares, counts, and the mean length of what was kept, in tokens."""
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


if __name__ == "__main__":
    sys.exit(cli.main("rejection_sampling", run))
