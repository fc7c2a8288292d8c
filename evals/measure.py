"""The measurement of a checkpoint on its tasks. `evals.evaluate` imports this once the environment is set."""

import argparse
import json
from collections.abc import Mapping, Sequence

import torch

from encore.models import language_model
from encore.recipe.eval_tasks import EvalTask
from encore.recipe.evals import Evaluation
from encore.recipe.metric_names import OF_WORLD
from encore.runtime import files, health
from encore.runtime.files import saving
from encore.runtime.health import Check
from encore.runtime.progress import Progress, reporter
from encore.sampling import engine
from evals import harness, scores, templates
from evals.harness import Row


def measure(evaluation: Evaluation, options: argparse.Namespace, progress: Progress) -> None:
    """Measure a checkpoint, and write the samples and then the results.

    `options` are the options of the command line. The file `options.samples` gets a line of JSON for each
    item, and `options.out` the results; each is written completely or not at all. Raises UserError for a
    mistake of the user, such as a task that does not exist.
    """
    torch.set_num_threads(options.threads)
    seed, tasks = evaluation.seed, [*evaluation.tasks.values()]
    assert seed is not None
    source = language_model.locate(options.model, options.step)
    lm = engine.load(source, evaluation, seed, lambda done, total: None)
    judges, digests = scores.load(tasks, options.inputs, source, lm, evaluation.dtype)
    rows, results, checks = [], {}, []
    for task in tasks:

        def draw(asked: EvalTask) -> list[Row]:
            lm.report = reporter(progress, asked.name)
            drawn = harness.sample(asked, lm, seed)
            checks.extend(_checks(asked, drawn, progress))
            scores.score(asked, drawn, judges)
            return drawn

        results[task.name], drawn = templates.measure(task, draw)
        if asked := task.data_set:
            results[task.name]["data_set"] = asked
        rows += drawn
        chosen = f" by template {results[task.name]['template']}" if task.templates else ""
        progress.say(f"{task.name}{chosen} {_headline(results[task.name]['metrics'])}")
    result = {
        "checkpoint": options.name.rpartition("/")[2],
        "digest": source.digest,
        "seed": seed,
        "tasks": results,
        **({"inputs": digests} if digests else {}),
        **({"health": checks} if checks else {}),
    }
    with saving("the evaluation", options.out.parent):
        options.out.unlink(missing_ok=True)  # results must never stand beside samples of another evaluation
        files.write(options.samples, "".join(json.dumps(row) + "\n" for row in rows))
        files.write_json(options.out, result)


def _checks(task: EvalTask, rows: Sequence[Row], progress: Progress) -> list[Check]:
    """Return and print a warning if a user's verifier failed for some completions; [] if it never did.

    Raises UserError if it failed for every completion.
    """
    failures = [said for row in rows for said in row.get("unjudged", {}).values()]
    if not failures:
        return []
    checks = [health.unjudged(task.name, failures, len(rows) * (task.samples or 1))]
    for check in health.stop_at_errors(checks):
        progress.warn(check["message"])
    return checks


def _headline(values: Mapping[str, Mapping[str, float]]) -> str:
    """Return the main metrics of a task with intervals, as `accuracy 0.612 (0.580 to 0.645), gold …`.

    Metrics without a value are left out.
    """
    return ", ".join(
        f"{name} {values[name]['value']:.3f} ({values[name]['low']:.3f} to {values[name]['high']:.3f})"
        for name in ("accuracy", "score", "gold", "win_rate", "proxy", "kl", "forward_kl", "calls", *OF_WORLD)
        if name in values and values[name]["value"] is not None
    )
