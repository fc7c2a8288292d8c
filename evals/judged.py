"""Win rates by a language model: each reply is compared with the data set's own reply, in both orders.

The judge is asked `question` with {prompt}, {first} and {second} filled in, and P(first) is the softmax of
its answers 1 and 2 (encore/labels/model_judges.py). The mean over both orders cancels a preference for one
position, which for judges of this size is large (Zheng et al. 2023, arXiv 2306.05685, §3.4). How often the
two orders disagree is measured too, because verdicts that depend on the order say little.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from encore.errors import UserError
from encore.labels.model_judges import Judge, ask, load_judge
from encore.models.language_model import locate
from encore.recipe.eval_tasks import EvalTask
from encore.recipe.machine import Source

Row = dict[str, Any]  # a row of evals.harness.sample


def load(tasks: Iterable[EvalTask]) -> dict[str, Judge]:
    """Return task name -> its judge; a judge that several tasks name is loaded once."""
    loaded: dict[Source, Judge] = {}
    judges: dict[str, Judge] = {}
    for task in tasks:
        if task.judge:
            model = task.judge.model
            if model not in loaded:
                loaded[model] = load_judge(locate(model), f"evals.tasks.{task.name}.judge")
            judges[task.name] = loaded[model]
    return judges


def score(task: EvalTask, rows: list[Row], judge: Judge) -> None:
    """Add to each row two values for each sample: "judge", P(the sample is better), and "order_flips".

    "order_flips" says whether the two orders have different winners. Raises UserError if the data set has no
    reply to compare with.
    """
    assert task.judge is not None
    pairs = [
        (row["question"], _reply(task, row), str(text).strip()) for row in rows for text in row["completions"]
    ]
    asked = [
        ask(task.judge.question, prompt, texts, *order)
        for prompt, *texts in pairs
        for order in ((0, 1), (1, 0))  # the data set's reply comes first, then the sample
    ]
    first, _ = judge.answers(asked)
    # probabilities that the sample wins, in each order
    wins = list(zip([1 - p for p in first[::2]], first[1::2], strict=True))
    for row in rows:
        sample_wins, wins = wins[: len(row["completions"])], wins[len(row["completions"]) :]
        row["judge"] = [(ahead + other) / 2 for ahead, other in sample_wins]
        row["order_flips"] = [(ahead > 0.5) != (other > 0.5) for ahead, other in sample_wins]


def _reply(task: EvalTask, row: Mapping[str, Any]) -> str:
    if text := row["answer"].strip():
        return text
    raise UserError(f"evals.tasks.{task.name}.judge: item {row['item']} has no reply to be compared with")
