"""Evaluate one checkpoint on all its tasks: one process, one model load.

    python -m evals.evaluate --config '{"tasks": {...}, "seed": 0}' --model results/…/metrics.json \
        --name r1_zero/cpu/base-recipe/seed0/after --out …/after.json --samples …/after.samples.jsonl

`--model` may also be `hub:{"hub": "org/name", "revision": "…"}` or `hub:{"path": "folder"}`. The models by
which tasks are scored are named by `--input reference=…/metrics.json` and `--input proxy=…/metrics.json`.
stdout has progress lines, stderr the log. The exit status is 0 if the evaluation is done, and 2 after a
mistake of the user, which is reported in one line.
"""

import argparse
import contextlib
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from encore.errors import UserError
from encore.recipe import evals
from encore.recipe.evals import Evaluation
from encore.recipe.machine import Elsewhere, HubModel, elsewhere
from encore.recipe.task import DataSet
from encore.runtime import gpus, sentinel
from encore.runtime.determinism import deterministic
from encore.runtime.environment import (
    ask_nothing,
    few_collections,
    keep_imports,
    keep_memory,
    quiet_environment,
    roles,
    stop_in_one_line,
)
from encore.runtime.extras import require_vllm
from encore.runtime.progress import Progress


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line. Raises UserError for a bad configuration, and for a stage that has not run."""
    parser = argparse.ArgumentParser(
        description="Evaluate one checkpoint on all its tasks.", allow_abbrev=False
    )
    parser.add_argument("--config", required=True, help='{"tasks": {name: {...}}, "seed": n} as JSON')
    parser.add_argument("--model", required=True, help="a stage's metrics.json, or hub:{json}")
    parser.add_argument("--step", type=int, help="after which the stage kept the model; default: its product")
    parser.add_argument("--input", action="append", default=[], metavar="ROLE=METRICS_JSON")
    parser.add_argument("--name", required=True, help="recipe/scale/arm/seedN/checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="the results, written last")
    parser.add_argument("--samples", type=Path, required=True, help="every completion, as JSON lines")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--gpus", type=int, help="so many of those that torch sees; default: as it takes them"
    )
    options = parser.parse_args(arguments)
    options.evaluation = evals.job(_object("--config", options.config))
    if options.evaluation.seed is None:
        raise UserError("--config: evals.seed: missing")
    if options.model.startswith("hub:"):
        options.model = elsewhere(_object("--model", options.model.removeprefix("hub:")))
    else:
        options.model = _stage("--model", Path(options.model))
    if options.step is not None and not isinstance(options.model, Path):
        raise UserError("--step: a stage keeps models by step, but --model is no stage")
    options.inputs = {role: _stage("--input", path) for role, path in roles(options.input).items()}
    return options


def _stage(option: str, metrics_json: Path) -> Path:
    try:
        sentinel.read_sentinel(metrics_json)
    except FileNotFoundError:
        raise UserError(f"{option}: {metrics_json} does not exist; run its stage first") from None
    except ValueError as error:
        raise UserError(f"{option}: {metrics_json}: not a stage's metrics.json: {error}") from None
    return metrics_json


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UserError(f"{option}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{option}: expected a JSON object, got {text[:40]}")
    return value


def _names_hub(evaluation: Evaluation, model: Path | Elsewhere) -> bool:
    """Return whether the model, a judge or a task comes from the Hub, as lm-eval's own tasks do."""
    models = [model, *(task.judge.model for task in evaluation.tasks.values() if task.judge)]
    return any(isinstance(each, HubModel) for each in models) or any(
        task.lm_eval is not None or (isinstance(task.task, DataSet) and task.task.hub is not None)
        for task in evaluation.tasks.values()
    )


def load() -> None:
    """Import the modules that `main` needs, before there is a job; the environment must be set already."""
    importlib.import_module("evals.measure")


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status; `arguments` defaults to the command line."""
    say: Callable[[str], None] = print
    ask_nothing()
    try:
        options = parse(arguments)
        folder, _, checkpoint = options.name.rpartition("/")
        progress = Progress(f"{folder.removesuffix('/evals')}/eval:{checkpoint}")
        say = progress.say
        if arguments is None:  # the process belongs to this command
            stop_in_one_line(say, lambda: "nothing of an evaluation is saved; the same command starts anew")
        few_collections()
        keep_memory()
        quiet_environment(_names_hub(options.evaluation, options.model))
        require_vllm(options.evaluation.said, "evals.")
        # lm-eval prints; `progress` keeps the true stdout
        with (
            gpus.reserved(options.gpus, progress.say),
            contextlib.redirect_stdout(sys.stderr),
            deterministic(options.evaluation.deterministic),
        ):
            # imported here, because torch and lm-eval read the environment, which is set only now
            from evals.measure import measure

            keep_imports()
            measure(options.evaluation, options, progress)
        progress.end(f"done: {options.out}")
    except UserError as error:
        say(f"error: {error}")
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
