"""The functions that problems.yaml names: where its documents come from and how a completion is scored."""

import json
from collections.abc import Callable
from functools import cache
from math import nan
from typing import Any

from datasets import Dataset

from encore.data import hub, hub_preferences
from encore.data.forms import Form
from encore.errors import UserError
from encore.rewards.verifiers import verifier
from encore.worlds import Problem, make, sample

ITEMS_SEED = 0  # a benchmark is a fixed set: the same items for every arm, seed and checkpoint


def dataset(spec: dict[str, Any], items: int, form: Form, **_: Any) -> dict[str, Dataset]:
    """The first `items` held-out problems of a recipe's `task`, `spec`. Raises UserError if it has fewer.

    Of a data set of preferences, what was asked, with the best reply as the answer.
    """
    problems: list[tuple[str, str, int | None, str]]
    if "world" in spec:
        drawn = sample(make(spec), items, ITEMS_SEED, "test")
        problems = [(p.question, p.answer, p.difficulty, p.begun) for p in drawn]
    else:
        found = hub_preferences.answered(spec, items) if "chosen" in spec else hub.problems(spec, items)
        problems = [(question, answer, None, "") for question, answer, *_ in found]
        if len(problems) < items:
            available = len(problems)
            raise UserError(f"items: {items} asked, but {hub.name(spec)} has {available}")
    checked = json.dumps(spec, sort_keys=True)
    _verifier(checked)  # one that cannot be loaded is told before anything is sampled
    rows = [
        {
            "question": question,
            "answer": answer,
            "difficulty": difficulty,
            "prompt": form.put(question, begun),
            "prefill": form.prefill + begun,
            "spec": checked,
        }
        for question, answer, difficulty, begun in problems
    ]
    return {"test": Dataset.from_list(rows)}


def process_results(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Score one completion of a problem; NaN where nothing verifies the task."""
    problem = Problem(doc["question"], doc["answer"], doc["difficulty"])
    verify = _verifier(doc["spec"])
    said = getattr(results[0], "said", results[0])  # what a tool has said answers nothing
    return {"accuracy": float(verify(problem, doc["prefill"] + said)) if verify else nan}


@cache
def _verifier(spec: str) -> Callable[[Problem, str], bool] | None:
    task = json.loads(spec)
    if "world" in task:
        return make(task).verify
    return verifier(task["verifier"]) if "verifier" in task else None
