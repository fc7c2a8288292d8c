"""Stage `sample`: several completions of each prompt, for a later stage `label` to compare.

    python -m encore.stages sample --config '{"task": …, "template": …, "problems": 512, "args": …}' \\
        --input policy=results/…/metrics.json …

Its product is `final/samples.jsonl` (encore/data/samples.py). `skip` leaves out that many problems at the
start, which earlier rounds have used. A killed run starts again, and ends with the same bits.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from encore import worlds
from encore.data import forms, prompts, samples
from encore.runtime import health
from encore.runtime.progress import Progress
from encore.sampling.draw import FORMULA, DrawingConfig, draw
from encore.stages.outcome import Outcome, untrained
from encore.stages.policy import locate_policy
from encore.stages.trainer_config import plain

# Below a half, most comparisons would be of a text with itself.
DISTINCT = 0.50


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> Outcome:
    """Sample, and save every completion in `workdir`/final."""
    began = time.perf_counter()
    args: DrawingConfig = plain(DrawingConfig, config["args"])
    source, tokenizer = locate_policy(config, inputs)
    skip, most = config.get("skip", 0), config.get("problems")
    asked = skip + (most or worlds.PROBLEMS) if skip else most
    form = forms.of(config, tokenizer)
    given = prompts.of_task(config["task"], form, asked, seed)
    given = given.select(range(skip, len(given)))
    short, _ = prompts.fitting(given, tokenizer, config.get("longest_prompt"))
    problems = short.to_list()
    texts = [row["prompt"] for row in problems]
    checks = health.stop_at_errors(
        [
            health.known_tokens(tokenizer, texts, "prompt"),
            health.same_template(config, inputs.get("policy")),
        ]
    )
    drawn = draw(texts, args, source, form.ends, config, seed, progress)
    rows = samples.grouped(problems, drawn.completions)
    samples.save(rows, workdir / "final")

    metrics = {**summary(rows), "skipped/long": len(given) - len(short)}
    distinct = metrics["distinct"]
    text = f"{distinct:.1%} of completions differ from all before of the same prompt"
    checks += [
        health.truncated(metrics["truncation_rate"]),
        health.check("distinct", distinct >= DISTINCT, distinct, DISTINCT, text),
    ]
    return untrained(metrics, checks, drawn.tokens, drawn.parameters, FORMULA, began)


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Numbers of problems and samples; shares of completions that are cut, empty, and unlike all before of
    the same prompt; mean length in tokens."""
    total = sum(len(row["completions"]) for row in rows)
    return {
        "problems": len(rows),
        "samples": total,
        "truncation_rate": sum(sum(row["truncated"]) for row in rows) / total,
        "empty": sum(not text.strip() for row in rows for text in row["completions"]) / total,
        "distinct": sum(len(set(row["completions"])) for row in rows) / total,
        "length": sum(sum(row["tokens"]) for row in rows) / total,
    }
