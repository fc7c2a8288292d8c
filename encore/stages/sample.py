"""Stage `sample`: several completions of each prompt, for a later stage `label` to compare.

    python -m encore.stages sample --config '{"task": …, "template": …, "problems": 512, "args": …}' \\
        --input policy=results/…/metrics.json …

Its product is `final/samples.jsonl` (encore/data/samples.py). `skip` leaves out this number of problems at
the start, which earlier rounds have used. A killed run starts again, and ends with the same bits.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from encore import worlds
from encore.data import forms, prompts, samples
from encore.recipe.kinds import SampleStage
from encore.runtime import health
from encore.sampling.draw import FORMULA, draw
from encore.stages.job import Job
from encore.stages.outcome import Outcome, untrained
from encore.stages.policy import locate_policy

# if fewer texts are distinct, most comparisons would be of a text with itself
DISTINCT = 0.50


def run(stage: SampleStage, job: Job) -> Outcome:
    """Draw the completions, and save all of them."""
    began = time.perf_counter()
    source, tokenizer = locate_policy(stage, job.inputs)
    skip, most = stage.skip, stage.problems
    asked = skip + (most or worlds.PROBLEMS) if skip else most
    form = forms.of(stage.form, tokenizer)
    dataset = prompts.of_task(stage.questions, form, asked, job.seed)
    dataset = dataset.select(range(skip, len(dataset)))
    short, _ = prompts.fitting(dataset, tokenizer, stage.longest_prompt)
    problems = short.to_list()
    texts = [row["prompt"] for row in problems]
    checks = health.stop_at_errors(
        [
            health.known_tokens(tokenizer, texts, "prompt"),
            health.same_template(stage.put, job.inputs.get("policy")),
        ]
    )
    drawn = draw(texts, stage.args, source, form.ends, stage, job.seed, job.progress)
    rows = samples.grouped(problems, drawn.completions)
    samples.save(rows, job.workdir / "final")

    metrics = {**summary(rows), "skipped/long": len(dataset) - len(short)}
    distinct = metrics["distinct"]
    text = f"{distinct:.1%} of completions differ from all before of the same prompt"
    checks += [
        health.truncated(metrics["truncation_rate"]),
        health.make_check("distinct", distinct >= DISTINCT, distinct, DISTINCT, text),
    ]
    return untrained(metrics, checks, drawn.tokens, drawn.parameters, FORMULA, began)


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the numbers of problems and samples, shares of completions, and their mean length in tokens.

    The shares are of completions that are cut, that are empty, and that differ from all earlier completions
    of the same prompt.
    """
    total = sum(len(row["completions"]) for row in rows)
    return {
        "problems": len(rows),
        "samples": total,
        "truncation_rate": sum(sum(row["truncated"]) for row in rows) / total,
        "empty": sum(not text.strip() for row in rows for text in row["completions"]) / total,
        "distinct": sum(len(set(row["completions"])) for row in rows) / total,
        "length": sum(sum(row["tokens"]) for row in rows) / total,
    }
