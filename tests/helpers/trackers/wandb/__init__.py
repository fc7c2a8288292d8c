"""In place of wandb, the part that transformers' callback and our own code call: it notes the calls."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

run: Any = None


class Error(Exception):
    """As of wandb.errors."""


def note(call: str, **what: Any) -> None:
    with Path("wandb.jsonl").open("a") as file:
        file.write(json.dumps({"call": call, **what}) + "\n")


class Config(dict[str, Any]):
    def update(self, values: Any, allow_val_change: bool = False) -> None:  # type: ignore[override]
        super().update(values)


config = Config()


def init(project: str, name: str, id: str, resume: str, dir: str) -> None:
    global run
    if os.environ.get("WANDB_REFUSES"):
        raise Error("api_key not configured (no-tty).\ncall wandb.login(key=[your_api_key])")
    print("wandb says something")
    note("init", project=project, name=name, id=id, resume=resume, dir=dir)
    run = SimpleNamespace(summary={}, _label=lambda code: None, name=name, id=id)


def define_metric(name: str, **options: Any) -> None:
    pass


def log(values: dict[str, float]) -> None:
    note("log", values=values)


def finish() -> None:
    global run
    run = None
    note("finish")
