"""The run of one recipe task through lm-eval, with scores for every sample.

lm-eval itself would reduce the `repeats` of an item: without a filter it scores the first sample and drops
the rest. Here its filters and its `process_results` are applied to each sample as if it were the only one.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lm_eval
import numpy as np
import torch

from encore import own_code
from encore.errors import UserError
from encore.recipe.eval_tasks import EvalTask
from encore.recipe.lm_eval_tasks import OWN
from encore.sampling.completion import Completion
from encore.sampling.tools import ToolInWorld
from encore.sampling.turns import CALLS, EPISODE, TURNS
from encore.worlds import environment
from encore.worlds.answers import answer, begun, formatted
from encore.worlds.final_answer import last_box
from evals import benchmarks
from evals.benchmarks import Benchmark
from evals.tasks import problems

NO_ANSWER = ("[invalid]", "[none]")  # texts that lm-eval's filters return when they find nothing

Row = dict[str, Any]  # an item with its samples, see `sample`


def sample(task: EvalTask, lm: Any, seed: int, folder: Path = OWN) -> list[Row]:
    """Draw and score `task.samples` completions of each item; the same seed gives the same completions.

    A world's items are drawn with the seed too. Each item has a row with "task", "item", "question",
    "answer", "difficulty" (None if the task has none), "prefill" if its prompt has begun the completions, and
    lists with an entry for each sample: "completions" (`Completion`s), "correct" (None if nothing verifies
    the task), "tokens", "truncated", "formatted", "votes" (its answer in the vote of maj@k, or None) and, if
    the policy has a tool, "turns", "calls" and "malformed".

    In a task of lm-eval, rows also have "scores": for each sample the list of its parts by the task's metric
    (one part, except for ifeval's instructions). The sample is correct if all parts are 1. If likelihoods are
    scored, an item has one score and no sample. If a user's verifier fails on a sample, the sample counts as
    wrong, and its row has "unjudged": index of the sample -> the verifier's message. Raises UserError for an
    unknown task, too few items, and a chat without a template.
    """
    form, by_chat = benchmarks.form_of(task, lm), task.lm_eval is not None and bool(task.chat)
    benchmark = benchmarks.load(task, seed, folder, lm)
    loaded = benchmark.task
    if task.items is not None and task.items > len(loaded.eval_docs):
        raise UserError(
            f"evals.tasks.{task.name}.items: {task.items} asked for, but {task.lm_eval} has "
            f"{len(loaded.eval_docs)}"
        )
    lm.end_with(form.ends)
    lm.tool = _tool(task)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    # `evaluate`, not `simple_evaluate`, which adds a description of the machine that takes seconds
    with _unscored(loaded):
        lm_eval.evaluate(
            lm,
            {"tasks": {task.name: loaded}},
            limit=task.items,
            bootstrap_iters=0,
            log_samples=False,
            apply_chat_template=by_chat,
            fewshot_as_multiturn=by_chat,
        )
    items = _by_item(loaded.instances)
    rows = [_row(task, number, instances[0]) for number, instances in enumerate(items)]
    if not task.samples:
        for instances, row in zip(items, rows, strict=True):
            _score(benchmark, instances, row)
        return rows
    responses = [instances[0].resps for instances in items]  # (items, samples)
    for drawn in range(task.samples):
        for (instance,), completions in zip(items, responses, strict=True):
            instance.resps = [completions[drawn]]
        loaded.apply_filters()
        _verify_together(task, [instance for (instance,) in items])
        for instances, row in zip(items, rows, strict=True):
            _score(benchmark, instances, row)
            _add(benchmark, instances[0], row)
    if reader := _answer_reader(task):
        for row in rows:
            row["votes"] = [
                reader(row.get("prefill", "") + completion.said) for completion in row["completions"]
            ]
    return rows


def _tool(task: EvalTask) -> ToolInWorld | None:
    """Return the tool that the model may call, and the world in which its calls act; None without a tool."""
    world: Any = task.task.make_world() if task.task else None
    return ToolInWorld(task.tool, world) if task.tool else None


@contextmanager
def _unscored(loaded: Any) -> Iterator[None]:
    """Make a task score nothing within the `with` block, because lm-eval's own scores are not used."""
    score = loaded.process_results
    loaded.process_results = lambda doc, results: {}
    try:
        yield
    finally:
        loaded.process_results = score


def _by_item(instances: Sequence[Any]) -> list[list[Any]]:
    """Return the requests of each item: one request or, if likelihoods are scored, one for each choice."""
    items: dict[int, list[Any]] = {}
    for instance in instances:
        items.setdefault(instance.doc_id, []).append(instance)
    return [sorted(of_item, key=lambda instance: instance.idx) for of_item in items.values()]


def _verify_together(task: EvalTask, instances: Sequence[Any]) -> None:
    """Score the present completion of every item in a single call, if the task's world can.

    The world remembers the scores, so that its verifier then finds them.
    """
    scores = getattr(task.task.make_world(), "scores", None) if task.task else None
    if scores:
        docs = [instance.doc for instance in instances]
        read = [
            problems.text_to_verify(doc, instance.resps)
            for doc, instance in zip(docs, instances, strict=True)
        ]
        scores([problems.of(doc) for doc in docs], read)


def _answer_reader(task: EvalTask) -> Callable[[str], str | None] | None:
    """Return the function by which the task's world reads answers from completions; None if it has none."""
    return getattr(task.task.make_world(), "stated", None) if task.task else None


def _row(task: EvalTask, item: int, instance: Any) -> Row:
    doc, ours = instance.doc, task.lm_eval is None
    return {
        "task": task.name,
        "item": item,
        "question": doc["question"] if ours else instance.args[0],
        "answer": None,
        "difficulty": doc["difficulty"] if ours else None,
        **{key: [] for key in ("completions", "correct", "tokens", "truncated", "formatted", "votes")},
        **({} if ours else {"scores": []}),
        **({key: [] for key in (TURNS, *CALLS)} if task.tool else {}),
        **({key: [] for key in EPISODE} if task.tool and task.tool.name == environment.KEY else {}),
        **({"prefill": doc["prefill"]} if ours and doc["prefill"] else {}),
        **({"number": doc["number"]} if ours and doc["number"] else {}),
    }


def _score(benchmark: Benchmark, instances: Sequence[Any], row: Row) -> None:
    """Add to `row` an item's score, from its one response, or from the likelihood of each choice."""
    loaded, doc = benchmark.task, instances[0].doc
    filtered = [instance.filtered_resps[benchmark.filter] for instance in instances]
    try:
        score = loaded.process_results(doc, filtered).get(benchmark.metric)
    except own_code.Failed as error:
        row.setdefault("unjudged", {})[len(row["correct"])] = str(error)
        score = 0.0
    parts = score if isinstance(score, list) and score else [score]
    if not all(isinstance(part, int | float | np.number | np.bool_) for part in parts):
        raise UserError(
            f"evals.tasks.{row['task']}.metric: {benchmark.metric} of an item is {score!r}; expected a number"
        )
    row["answer"] = str(loaded.doc_to_target(doc))
    right = all(part == 1 for part in parts)
    row["correct"].append(None if np.isnan(parts[0]) else right)
    if "scores" in row:
        row["scores"].append([float(part) for part in parts])


def _add(benchmark: Benchmark, instance: Any, row: Row) -> None:
    """Add to `row` the completion of `instance`, its length, its form and its vote."""
    completion: Completion = instance.resps[0]
    row["completions"].append(completion)
    row["tokens"].append(completion.tokens)
    row["truncated"].append(completion.truncated)
    for key in (TURNS, *CALLS, *EPISODE):
        if key in row:
            row[key].append(getattr(completion, key))
    opened = instance.doc.get("prefill") or begun(instance.args[0])  # a prompt may begin the answer
    row["formatted"].append(formatted(opened + completion.said))
    is_answer = benchmark.task.get_config("filter_list") is not None
    filtered = completion.said if completion.turns else instance.filtered_resps[benchmark.filter]
    row["votes"].append(vote(filtered, is_answer))


def vote(filtered: Any, is_answer: bool) -> str | None:
    """Return the answer that a filtered completion votes for: the boxed or tagged text, or else None.

    If `is_answer`, the filter itself extracts answers, so without a box or tag its whole text is the answer.
    """
    if not isinstance(filtered, str):
        return None
    inside = last_box(filtered)
    voted = answer(filtered) if inside is None else inside
    if voted is None and is_answer and filtered not in NO_ANSWER:
        return filtered
    return voted
