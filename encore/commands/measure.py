"""The command `encore eval`, which measures a model on tasks that the command line names."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from encore.commands.models import identifier, named
from encore.errors import UserError, known, nearest
from encore.recipe import evals, lm_eval_tasks
from encore.recipe.load import load_sound
from encore.recipe.machine import Backend
from encore.recipe.recipe import Recipe
from encore.recipe.strict_yaml import Content

SAMPLING = {"samples": 1, "temperature": 0.0, "top_p": 1.0, "k": [1]}


class Asked(NamedTuple):
    """The options of `encore eval`: number of items and, for a user's file, columns and longest answer."""

    items: int | None = None
    question: str = "question"
    answer: str = "answer"
    tokens: int = 512


def measure(model: str, names: list[str], asked: Asked, out: Path, gpus: int, backend: Backend = "hf") -> int:
    """Measure a model on the named tasks, and return the exit status of the evaluation.

    Results and completions are written into a folder of the model in `out`.
    """
    source = named(model)
    config = {"seed": 0, "tasks": dict(_task(name, asked) for name in names), "backend": backend}
    evals.job(config)
    place = out / identifier(str(source.parent if isinstance(source, Path) else model))
    place.mkdir(parents=True, exist_ok=True)
    name_of_model = str(source) if isinstance(source, Path) else f"hub:{json.dumps(source.model_dump())}"
    command = [
        sys.executable,
        "-m",
        "evals.evaluate",
        "--config",
        json.dumps(config),
        "--model",
        name_of_model,
    ]
    command += ["--name", place.name, "--gpus", str(gpus), "--threads", str(os.cpu_count())]
    command += ["--out", str(place / "results.json"), "--samples", str(place / "samples.jsonl")]
    with (place / "eval.log").open("w", encoding="utf-8") as log:
        status = subprocess.run(command, stderr=log, check=False).returncode
    if status == 0:
        print(f"{place / 'results.json'}; every completion: {place / 'samples.jsonl'}")
    elif status == -signal.SIGKILL:
        print("failed: killed, as a system does that runs out of memory", file=sys.stderr)
    else:
        print(f"failed; {place / 'eval.log'} says why", file=sys.stderr)
    return abs(status)


def _task(name: str, asked: Asked) -> tuple[str, dict[str, Any]]:
    """Return the name and the keys of a task that the command line names: of a recipe, a file or lm-eval."""
    limit = {"items": asked.items} if asked.items else {}
    if name.endswith((".jsonl", ".parquet")):
        return identifier(Path(name).stem), _of_file(Path(name), asked)
    recipe, _, task = name.partition("/")
    if not task:
        return identifier(name), _of_lm_eval(name) | limit
    return identifier(name), _of_recipe(recipe, task) | limit


def _of_lm_eval(asked: str) -> Content:
    """Return the keys of the task of lm-eval that a text such as "gsm8k:strict-match" names.

    Raises UserError if the task has several filters or metrics and the text names none of them.
    """
    name, *choices = asked.split(":")
    settings = lm_eval_tasks.settings(name)
    task: Content = {"lm_eval": name}
    if settings.generates:
        task |= {**SAMPLING, "max_gen_toks": settings.tokens}
    for choice in choices:
        known(asked, [choice], [*settings.filters, *settings.metrics], f"filter or metric of {name}")
    for key, names in (("filter", settings.filters), ("metric", settings.metrics)):
        chosen = [choice for choice in choices if choice in names]
        if len(names) > 1 and not chosen:
            forms = ", ".join(":".join([name, *choices, each]) for each in names)
            raise UserError(f"{asked}: it has several {key}s; name one of them: {forms}")
        if len(chosen) > 1:
            raise UserError(f"{asked}: expected one {key}, got {' and '.join(chosen)}")
        if chosen:
            task[key] = chosen[0]
    return task


def _of_file(file: Path, asked: Asked) -> dict[str, Any]:
    """Return the keys of a task that asks the questions of a user's file and verifies them as mathematics."""
    if not file.is_file():
        raise UserError(f"{file}: there is no such file")
    rows = sum(1 for line in file.open(encoding="utf-8") if line.strip()) if file.suffix == ".jsonl" else None
    if rows is None and asked.items is None:
        raise UserError(f"{file}: --items is missing; how many rows?")
    task = {"file": str(file), "question": asked.question, "answer": asked.answer, "verifier": "math"}
    return {
        "task": task,
        "template": "{question}",
        "items": asked.items or rows,
        **SAMPLING,
        "max_gen_toks": asked.tokens,
    }


def _of_recipe(name: str, task: str) -> dict[str, Any]:
    """Return the keys of a task of a recipe's first arm at its first scale, without its `score`."""
    recipes, _ = load_sound()
    if name not in recipes:
        raise UserError(f'{name}/{task}: no recipe "{name}"{nearest(name, [*recipes])}')
    recipe: Recipe = recipes[name]
    scale = recipe.scales[0]
    tasks = recipe.evals(scale, recipe.arms(scale)[0]).tasks
    if task not in tasks:
        raise UserError(f'{name}/{task}: no task "{task}"{nearest(task, [*tasks])}')
    asked = tasks[task].changed(checkpoints=None, score=None, templates=None, protocol=None)
    return asked.model_dump(mode="json", exclude_unset=True)
