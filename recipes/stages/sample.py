"""Stage `sample`: several completions of each prompt, for a later stage `label` to compare.

    python -m recipes.stages.sample --config '{"task": …, "template": …, "problems": 512, "args": …}' \\
        --input policy=results/…/metrics.json …

Its product is `final/samples.jsonl` (recipes/samples.py). `skip` leaves out the first so many problems: those
of earlier rounds. A run that was killed starts again, and ends with the same bits.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipes.runtime import curves, files, health, provenance, sentinel
from recipes.runtime.progress import Progress
from recipes.sampling.draw import FORMULA, DrawingConfig, draw
from recipes.stages import cli
from recipes.stages.arguments import plain

# Below a half, most comparisons would be of a text with itself.
DISTINCT = 0.50


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> dict[str, Any]:
    """Sample, and write every completion to `workdir`/final."""
    from recipes.data import prompts, samples
    from recipes.models import language_model

    started, began = provenance.now(), time.perf_counter()
    args: DrawingConfig = plain(DrawingConfig, config["args"])
    source = language_model.locate(config.get("model"), inputs.get("policy"))
    tokenizer = language_model.load_tokenizer(source)
    skip, most = config.get("skip", 0), config.get("problems")
    asked = skip + (most or prompts.PROBLEMS) if skip else most
    given = prompts.load(config["task"], config["template"], asked, seed)
    given = given.select(range(skip, len(given)))
    short, _ = prompts.fitting(given, tokenizer, config.get("longest_prompt"))
    problems = short.to_list()
    texts = [row["prompt"] for row in problems]
    base = sentinel.read(inputs["policy"])["config"].get("template") if "policy" in inputs else None
    checks = health.stop_at_errors(
        [
            health.known_tokens(tokenizer, texts, "prompt"),
            health.same_template(config["template"], base),
        ]
    )
    drawn = draw(texts, args, source, tokenizer, config, seed, progress)
    rows = samples.grouped(problems, drawn.completions)
    samples.save(rows, workdir / "final")

    measured = {**summary(rows), "skipped/long": len(given) - len(short)}
    new = measured["distinct"]
    checks += [
        health.truncated(measured["truncation_rate"]),
        health.check(
            "distinct",
            new >= DISTINCT,
            new,
            DISTINCT,
            f"{new:.1%} of completions differ from all before of the same prompt",
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


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Counts, shares of completions cut, empty and new among a prompt's, and their mean length in tokens."""
    total = sum(len(row["completions"]) for row in rows)
    return {
        "problems": len(rows),
        "samples": total,
        "truncation_rate": sum(sum(row["truncated"]) for row in rows) / total,
        "empty": sum(not text.strip() for row in rows for text in row["completions"]) / total,
        "distinct": sum(len(set(row["completions"])) for row in rows) / total,
        "length": sum(sum(row["tokens"]) for row in rows) / total,
    }


if __name__ == "__main__":
    sys.exit(cli.main("sample", run))
