"""Published protocols of evaluation. A task that names one takes from it all keys that it does not set.

    aime24: {task: …, template: …, items: 30, samples: 64, k: [1, 16, 64], protocol: deepseek_r1}

protocols.yaml has the protocols, each with its source. A key of the task itself wins, in whichever
layer of the recipe it is, and the report shows it (`departures`). A job gets the resolved keys: a protocol by
its name and the same numbers written out are one evaluation.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from encore.errors import known

KEY = "protocol"
PROMPTS = ("chat", "lm_eval")  # keys of a task that already has its prompt


@cache
def protocols() -> dict[str, dict[str, Any]]:
    """Return name -> {"source": where it is published, "settings": keys of an evaluation task}."""
    text = Path(__file__).with_name("protocols.yaml").read_text(encoding="utf-8")
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def check_protocol(name: str | None) -> None:
    """Raise UserError if no protocol has this name."""
    if name is not None:
        known(KEY, [name], list(protocols()), KEY)


def completed(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task with the settings of its protocol below its own keys.

    The task is returned unchanged if `check_protocol` refuses it.
    """
    return _settings(task) | dict(task)


def departures(task: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return key -> (the protocol's value, the task's own), of a completed task."""
    return {key: (theirs, task[key]) for key, theirs in _settings(task).items() if task[key] != theirs}


def _settings(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the task's protocol, without its template if the task has its own prompt."""
    if KEY not in task:
        return {}
    settings = protocols().get(task[KEY], {}).get("settings", {})
    prompted = any(key in task for key in PROMPTS)
    return {key: value for key, value in settings.items() if not (prompted and key == "template")}
