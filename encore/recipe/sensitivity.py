"""Protocol sensitivity: one task by every combination of template, wording, temperature and backend.

    evals:
      sensitivity:
        task: heldout
        items: 64
        samples: 4
        templates: {turn: "<user>{question}<assistant>", begun: "<user>{question}<assistant><think>"}
        wordings: {plain: "{question}", polite: "Please answer: {question}"}
        temperatures: [1.0, 0.6, 0.0]
        backends: [lean, hf]

The recipe's first arm is measured so with its first seed, before and after training: at its first and its
last checkpoint. There is one evaluation for each of both and each backend, `before_sensitivity_lean`, whose
tasks are the other choices. Of a choice without its key the task's own stands alone. The first of each choice
is what the report compares the others with, so the recipe's own protocol comes first.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

from encore.recipe.eval_tasks import OWN
from encore.worlds.text import prompt

KEY = "sensitivity"
MARK = f"_{KEY}_"  # between checkpoint and backend in the name of an evaluation
DEFAULT_BACKEND = "hf"  # encore/sampling/engine.py
REPLACED = ("checkpoints", "protocol", "template", "templates", "chat", "score")  # keys of the task


class Protocol(NamedTuple):
    """One way to measure a model."""

    template: str
    wording: str
    temperature: float
    backend: str

    @property
    def task(self) -> str:
        """Its name among the tasks of an evaluation, which are of one backend."""
        return f"{self.template}+{self.wording}+t{self.temperature:g}"


def levels(evals: Mapping[str, Any]) -> dict[str, list]:
    """Choice (a field of Protocol) -> what there is to choose, by name; the first is compared with."""
    asked = evals[KEY]
    return {
        "template": list(asked.get("templates", [OWN])),
        "wording": list(asked.get("wordings", [OWN])),
        "temperature": asked.get("temperatures") or [evals["tasks"][asked["task"]]["temperature"]],
        "backend": asked.get("backends") or [evals.get("backend", DEFAULT_BACKEND)],
    }


def protocols(evals: Mapping[str, Any]) -> list[Protocol]:
    """Every combination; the first is of the first of each choice."""
    return [Protocol(*chosen) for chosen in product(*levels(evals).values())]


def ends(evals: Mapping[str, Any]) -> list[str]:
    """The checkpoints before and after training; fewer than two where fewer are evaluated."""
    names = list(evals.get("checkpoints", {}))
    return names[:1] + names[1:][-1:]


def evaluation(checkpoint: str, backend: str) -> str:
    """The name of the evaluation of a checkpoint by a backend."""
    return f"{checkpoint}{MARK}{backend}"


def evaluations(evals: Mapping[str, Any]) -> list[str]:
    """The names of all of them; none without the key."""
    if KEY not in evals:
        return []
    return [
        evaluation(checkpoint, backend) for checkpoint in ends(evals) for backend in levels(evals)["backend"]
    ]


def parts(name: str) -> tuple[str, str]:
    """Checkpoint and backend of an evaluation; no backend where it is not one of these."""
    checkpoint, _, backend = name.partition(MARK)
    return checkpoint, backend


def tasks(evals: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The tasks of each evaluation: name -> its keys. At temperature 0 one sample of a problem is all."""
    asked = evals[KEY]
    task = evals["tasks"][asked["task"]]
    shared = {key: value for key, value in task.items() if key not in REPLACED} | {"k": [1]}
    shared |= {key: asked[key] for key in ("items", "samples") if key in asked}
    return {
        one.task: shared
        | _form(task, asked, one)
        | {"temperature": one.temperature}
        | ({} if one.temperature else {"samples": 1})
        for one in protocols(evals)
    }


def _form(task: Mapping[str, Any], asked: Mapping[str, Any], chosen: Protocol) -> dict[str, Any]:
    """The key `template` or `chat`: the chosen template, with the question in the chosen wording."""
    wording = asked.get("wordings", {}).get(chosen.wording, "{question}")
    if "templates" in asked:
        return {"template": prompt(asked["templates"][chosen.template], wording)}
    if "chat" not in task:
        return {"template": prompt(task["template"], wording)}
    keys = task["chat"] if isinstance(task["chat"], Mapping) else {}
    return {"chat": {**keys, "user": prompt(keys.get("user", "{question}"), wording)}}
