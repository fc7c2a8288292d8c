"""The functions that problems.yaml names: the source of its documents, and the score of a completion."""

from collections.abc import Callable
from functools import cache
from math import nan
from typing import Any

from datasets import Dataset
from pydantic import TypeAdapter

from encore.data import hub, hub_preferences
from encore.data.forms import Prompter
from encore.errors import UserError
from encore.recipe.eval_tasks import AskedTask
from encore.recipe.task import Comparisons, WorldTask
from encore.rewards.verifiers import verifier
from encore.worlds import Problem, sample

Doc = dict[str, Any]  # a row of `dataset`, as lm-eval passes it on


def dataset(
    spec: AskedTask, items: int, form: Prompter, seed: int, skip: int = 0, **_: Any
) -> dict[str, Dataset]:
    """Return `items` held-out problems of a recipe's task `spec`, without the first `skip`.

    Raises UserError if the task has fewer.

    Problems of a world are drawn with the run's `seed`, so that all arms and checkpoints of a seed get the
    same problems, and another seed gets others. Of a data set, which is fixed, every seed gets the first
    rows. In a data set of preferences, a row's request is the question and its best reply the answer.
    """
    problems: list[tuple[str, str, int | None, str, int]]
    if isinstance(spec, WorldTask):
        drawn = sample(spec.make_world(), skip + items, seed, "test")
        problems = [(p.question, p.answer, p.difficulty, p.begun, p.number) for p in drawn]
    else:
        pairs = (
            hub_preferences.answered(spec, skip + items)
            if isinstance(spec, Comparisons)
            else hub.problems(spec, skip + items)
        )
        problems = [(question, answer, None, "", 0) for question, answer, *_ in pairs]
        if len(problems) < skip + items:
            asked = f"{items} after the first {skip}" if skip else f"{items}"
            raise UserError(f"items: {asked} asked, but {spec.name} has {len(problems)}")
    checked = spec.model_dump_json(exclude_unset=True)
    _verifier(checked)  # loaded now, so that a broken verifier is reported before anything is sampled
    rows = [
        {
            "question": question,
            "answer": answer,
            "difficulty": difficulty,
            "prompt": form.put(question, begun),
            "prefill": form.prefill + begun,
            "number": number,
            "spec": checked,
        }
        for question, answer, difficulty, begun, number in problems[skip:]
    ]
    return {"test": Dataset.from_list(rows)}


def process_results(doc: Doc, results: list[str]) -> dict[str, float]:
    """Score one completion of a problem; NaN if nothing verifies the task."""
    verify = _verifier(doc["spec"])
    return {"accuracy": float(verify(of(doc), text_to_verify(doc, results))) if verify else nan}


def of(doc: Doc) -> Problem:
    """Return the problem of a document."""
    return Problem(doc["question"], doc["answer"], doc["difficulty"], number=doc["number"])


def text_to_verify(doc: Doc, results: list[str]) -> str:
    """Return the text that a verifier reads: the prompt's prefill and the first of `results`."""
    said = getattr(results[0], "said", results[0])  # the text of a tool is not part of an answer
    return str(doc["prefill"] + said)


@cache
def _verifier(spec: str) -> Callable[[Problem, str], bool] | None:
    task: AskedTask = TypeAdapter(AskedTask).validate_json(spec)
    if not task.is_verified:
        return None
    world = task.make_world()
    return world.verify if world else verifier(task.verifies)
