"""Run one task of a recipe through lm-eval and keep every sample.

lm-eval itself would reduce the `repeats` of an item: without a filter it scores the first sample and drops
the rest. Instead its filters and its `process_results` are applied to each sample as if it were the only one.
"""

import random
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import lm_eval
import numpy as np
import torch
from lm_eval.api.model import LM
from lm_eval.api.task import Task
from lm_eval.tasks import TaskManager

from recipes.data import forms
from recipes.errors import UserError
from recipes.rewards.final_answer import last_box
from recipes.sampling.completion import Completion
from recipes.spec.eval_tasks import EvalTask
from recipes.worlds import of_task
from recipes.worlds.answers import answer, begun, formatted

TASKS = Path(__file__).parent / "tasks"
FEWSHOT_SEED = 1234  # lm-eval's default
NO_ANSWER = ("[invalid]", "[none]")  # what lm-eval's filters return when they find nothing

Row = dict[str, Any]  # one item, see `sample`


def form_of(task: EvalTask, lm: Any) -> forms.Form:
    """How a task of ours puts its questions to the model `lm`."""
    if task.chat is None:
        return forms.plain(task.template or "{question}")
    try:
        return forms.of({"chat": task.chat}, lm.tokenizer)
    except UserError as error:
        raise UserError(f"evals.tasks.{task.name}.{error}") from None


def load(task: EvalTask, folder: Path = TASKS, lm: Any = None) -> Task:
    """The lm-eval task with this recipe's samples and decoding. Raises UserError for an unknown name.

    `lm`: the model whose chat template a task by chat takes. An lm-eval name is looked up among the YAMLs of
    `folder` first, then among lm-eval's own thousands.
    """
    where = f"evals.tasks.{task.name}"
    if task.lm_eval is None:
        metadata: Any = {"spec": task.problems, "items": task.items, "form": form_of(task, lm)}
        manager, name = TaskManager(include_path=TASKS, include_defaults=False, metadata=metadata), "problems"
    else:
        manager, name = TaskManager(include_path=folder, include_defaults=False), task.lm_eval
        if name not in manager.all_subtasks:
            manager = TaskManager(include_path=folder)
        if name not in manager.all_subtasks:
            known = get_close_matches(name, manager.all_subtasks, n=1, cutoff=0)[0]
            raise UserError(f'{where}.lm_eval: lm-eval has no task "{name}"; did you mean "{known}"?')
    try:
        loaded = manager.load([name])["tasks"][name]
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    except (OSError, ValueError) as error:
        raise UserError(f"{where}: cannot load its data: {str(error).strip().splitlines()[0]}") from error
    if loaded.OUTPUT_TYPE != "generate_until":
        raise UserError(f"{where}.lm_eval: {name} scores likelihoods; expected one that generates")
    loaded.set_config("task", task.name)
    loaded.set_config("repeats", task.samples)
    loaded.set_config("generation_kwargs", task.generation(), update=True)
    if loaded.get_config("num_fewshot") is None:
        loaded.set_config("num_fewshot", 0)
    loaded.set_fewshot_seed(FEWSHOT_SEED)
    return loaded


def sample(task: EvalTask, lm: LM, seed: int, folder: Path = TASKS) -> list[Row]:
    """Draw and score `task.samples` completions of each item; the same seed gives the same completions.

    Each item has a row with "task", "item", "question", "answer", "difficulty" (None where a task has none),
    and lists with an entry a sample: "completions" (`Completion`s), "correct" (None where nothing verifies
    the task), "tokens", "truncated", "formatted" and "votes" (its answer in the vote of maj@k, or None).
    Raises UserError for an unknown task or too few items.
    """
    loaded = load(task, folder, lm)
    if task.items is not None and task.items > len(loaded.eval_docs):
        raise UserError(
            f"evals.tasks.{task.name}.items: {task.items} asked, {task.lm_eval} has {len(loaded.eval_docs)}"
        )
    lm.end_with(form_of(task, lm).ends)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    # `evaluate`, not `simple_evaluate`: the latter adds a description of the machine that takes seconds
    lm_eval.evaluate(
        lm, {"tasks": {task.name: loaded}}, limit=task.items, bootstrap_iters=0, log_samples=False
    )
    responses = [instance.resps for instance in loaded.instances]  # (items, samples)
    rows = [_row(task, item, instance) for item, instance in enumerate(loaded.instances)]
    for drawn in range(task.samples):
        for instance, completions in zip(loaded.instances, responses, strict=True):
            instance.resps = [completions[drawn]]
        loaded.apply_filters()
        for instance, row in zip(loaded.instances, rows, strict=True):
            _score(loaded, instance, row)
    if reader := _answer_reader(task):
        prefill = form_of(task, lm).prefill
        for row in rows:
            row["votes"] = [reader(prefill + completion) for completion in row["completions"]]
    return rows


def _answer_reader(task: EvalTask) -> Callable[[str], str | None] | None:
    """The function by which a world without tags reads the answer of a completion; None for other worlds."""
    world = of_task(task.problems or {})
    return getattr(world, "stated", None)


def _row(task: EvalTask, item: int, instance: Any) -> Row:
    doc = instance.doc
    return {
        "task": task.name,
        "item": item,
        "question": doc["question"] if task.problems is not None else instance.args[0],
        "answer": None,
        "difficulty": doc.get("difficulty"),
        **{key: [] for key in ("completions", "correct", "tokens", "truncated", "formatted", "votes")},
    }


def _score(loaded: Task, instance: Any, row: Row) -> None:
    """Score the one response `instance` holds: the first metric under the task's first filter."""
    completion: Completion = instance.resps[0]
    filtered = next(iter(instance.filtered_resps.values()))
    score = next(iter(loaded.process_results(instance.doc, [filtered]).values()))
    if not isinstance(score, int | float | np.number):
        raise UserError(f"evals.tasks.{row['task']}: its first metric is {score!r}; expected right or wrong")
    row["answer"] = str(loaded.doc_to_target(instance.doc))
    row["completions"].append(completion)
    row["correct"].append(None if np.isnan(score) else bool(score == 1))
    row["tokens"].append(completion.tokens)
    row["truncated"].append(completion.truncated)
    opened = instance.doc.get("prefill") or begun(instance.args[0])  # a prompt may begin the answer
    row["formatted"].append(formatted(opened + completion))
    row["votes"].append(vote(filtered, is_answer=loaded.get_config("filter_list") is not None))


def vote(filtered: Any, is_answer: bool) -> str | None:
    """The answer that a completion votes for: the boxed or tagged one, or else what the filter gave."""
    if not isinstance(filtered, str):
        return None
    inside = last_box(filtered)
    given = answer(filtered) if inside is None else inside
    if given is None and is_answer and filtered not in NO_ANSWER:
        return filtered
    return given
