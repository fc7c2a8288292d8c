"""Evaluate one checkpoint on all its tasks: one process, one model load.

    python -m evals.evaluate --config '{"tasks": {...}, "seed": 0}' --model results/…/metrics.json \
        --name r1_zero/cpu/base-recipe/seed0/after --out …/after.json --samples …/after.samples.jsonl

`--model` may also be `hub:{"hub": "org/name", "revision": "…"}` or `hub:{"path": "folder"}`. What tasks score
by comes as `--input reference=…/metrics.json` and `--input proxy=…/metrics.json`. stdout has progress lines,
stderr the log. Exit status: 0 done, 2 a mistake told in one line.
"""

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from recipes.errors import UserError
from recipes.runtime import files, gpus, sentinel
from recipes.runtime.environment import few_collections, quiet_environment, roles
from recipes.runtime.files import saving
from recipes.runtime.progress import Progress, reporter
from recipes.spec import eval_tasks as tasks


def run(
    config: dict[str, Any],
    model: Path | dict[str, Any],
    inputs: Mapping[str, Path],
    name: str,
    out: Path,
    samples: Path,
    progress: Progress,
) -> None:
    """Write `samples` (a row of JSON an item), then `out`, each whole or not at all. Raises UserError."""
    todo = tasks.parse(config)
    if not isinstance(config.get("seed"), int):
        raise UserError(f"--config: seed: expected an integer, got {config.get('seed')!r}")
    # imported once the config is known to be good, and the environment is set
    from evals import harness, metrics, preference
    from recipes.models import language_model
    from recipes.sampling import engine

    source = language_model.locate(
        model if isinstance(model, dict) else None, model if isinstance(model, Path) else None
    )
    lm = engine.load(source, config, lambda done, total: None)
    judges, digests = preference.load(todo, inputs, source, lm)
    rows, results = [], {}
    for task in todo:
        lm.report = reporter(progress, task.name)
        drawn = harness.sample(task, lm, config["seed"])
        preference.score(task, drawn, judges)
        results[task.name] = metrics.summary(drawn, task.k)
        rows += drawn
        progress.say(f"{task.name} {headline(results[task.name]['metrics'])}")
    result = {
        "checkpoint": name.rpartition("/")[2],
        "digest": source.digest,
        "seed": config["seed"],
        "tasks": results,
        **({"inputs": digests} if digests else {}),
    }
    with saving("the evaluation", out.parent):
        out.unlink(missing_ok=True)  # never beside samples it does not stand for
        files.write(samples, "".join(json.dumps(row) + "\n" for row in rows))
        files.write_json(out, result)


def headline(metrics: Mapping[str, Mapping[str, float]]) -> str:
    """`accuracy 0.612 (0.580 to 0.645), gold …`: what a task was for, each with its interval."""
    return ", ".join(
        f"{name} {metrics[name]['value']:.3f} ({metrics[name]['low']:.3f} to {metrics[name]['high']:.3f})"
        for name in ("accuracy", "gold", "win_rate", "proxy", "kl")
        if name in metrics
    )


def names_hub(config: dict[str, Any], model: Path | dict[str, Any]) -> bool:
    """Whether the model or a task is of the Hub; lm-eval's own tasks are."""
    specs = [spec for spec in config.get("tasks", {}).values() if isinstance(spec, dict)]
    task = any("lm_eval" in spec or "hub" in (spec.get("task") or {}) for spec in specs)
    return task or (isinstance(model, dict) and "hub" in model)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line. Raises UserError for what is no JSON object, or a missing metrics.json."""
    parser = argparse.ArgumentParser(
        description="Evaluate one checkpoint on all its tasks.", allow_abbrev=False
    )
    parser.add_argument("--config", required=True, help='{"tasks": {name: {...}}, "seed": n} as JSON')
    parser.add_argument("--model", required=True, help="a stage's metrics.json, or hub:{json}")
    parser.add_argument("--input", action="append", default=[], metavar="ROLE=METRICS_JSON")
    parser.add_argument("--name", required=True, help="recipe/scale/arm/seedN/checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="the results, written last")
    parser.add_argument("--samples", type=Path, required=True, help="every completion, as JSON lines")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--gpus", type=int, help="so many of those that torch sees; default: as it takes them"
    )
    options = parser.parse_args(arguments)
    options.config = _object("--config", options.config)
    if options.model.startswith("hub:"):
        options.model = _object("--model", options.model.removeprefix("hub:"))
    else:
        options.model = _stage("--model", Path(options.model))
    options.inputs = {role: _stage("--input", path) for role, path in roles(options.input).items()}
    return options


def _stage(option: str, metrics_json: Path) -> Path:
    try:
        sentinel.read(metrics_json)
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


def main(arguments: list[str] | None = None) -> int:
    """Entry point; `arguments` defaults to the command line's."""
    say: Callable[[str], None] = print
    try:
        options = parse(arguments)
        folder, _, checkpoint = options.name.rpartition("/")
        progress = Progress(f"{folder.removesuffix('/evals')}/eval:{checkpoint}")
        say = progress.say
        few_collections()
        quiet_environment(names_hub(options.config, options.model))
        import torch

        torch.set_num_threads(options.threads)
        # lm-eval prints; `progress` keeps the true stdout
        with gpus.reserved(options.gpus, progress.say), contextlib.redirect_stdout(sys.stderr):
            run(
                options.config,
                options.model,
                options.inputs,
                options.name,
                options.out,
                options.samples,
                progress,
            )
        progress.end(f"done: {options.out}")
    except UserError as error:
        say(f"error: {error}")
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
