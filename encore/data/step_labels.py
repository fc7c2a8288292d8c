"""Step labels: how right each step of a solution is, from 0 to 1, by a stage `label_steps` or a data set."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from encore.data import hub
from encore.data.forms import PREFILL
from encore.data.samples import COLUMNS, Sample
from encore.errors import UserError
from encore.recipe.task import LabelledSteps
from encore.runtime import rows as files
from encore.worlds.text import prompt as fill

FILE = "step_labels.jsonl"
SEPARATOR = "\n"  # text between the steps of a data set

# the end of a step, as an offset in the characters of its completion, and its label between 0 and 1
Labelled = list[tuple[int, float]]


class Solved(Sample):
    """A row of samples with labels of each completion's steps; the last step ends with the completion."""

    steps: list[Labelled]


def save(rows: Sequence[Solved], folder: Path) -> None:
    """Write `rows` to `folder`/step_labels.jsonl, either completely or not at all."""
    begun = (PREFILL,) if rows and PREFILL in rows[0] else ()
    files.save(rows, (*COLUMNS, "steps", *begun), folder, FILE)


def load(metrics_json: Path) -> list[Solved]:
    """Return the rows that an upstream stage has saved. Raises UserError as `runtime.rows.load` does."""
    return cast(list[Solved], files.load(metrics_json, FILE, (*COLUMNS, "steps"), "step labels"))


def of_task(task: LabelledSteps, template: str, problems: int | None = None) -> list[Solved]:
    """Return the first `problems` rows, or all, of a data set of TRL's type "stepwise supervision".

    The keys of `task` are {hub, revision, split, optionally subset} or {file}, and the names of three
    columns: `prompt`, a text; `completion`, a list of steps; `labels`, a list of equal length with true and
    false, or numbers from 0 to 1, as in trl-lib/prm800k and trl-lib/math_shepherd. Steps are joined by
    newlines. A solution whose last label is wrong goes no further (PRM800K, Lightman et al. 2023, §2.4), so
    it has no end of sequence. Raises UserError for a column that is missing and for labels that do not match
    the steps.
    """
    keys = ("prompt", "completion", "labels")
    data = hub.load(task, keys)
    hub.require_rows(task, len(data), problems)
    rows: list[Solved] = []
    for number in range(problems or len(data)):
        row = data[number]
        prompt, steps, labels = (row[getattr(task, key)] for key in keys)
        if not _agree(steps, labels):
            raise UserError(
                f"task.labels: row {number}: expected a label from 0 to 1 of each step, got {labels!r:.60} "
                f"of the steps {steps!r:.60}"
            )
        ends, text = [], ""
        for step in steps:
            text += SEPARATOR * bool(text) + step
            ends.append(len(text))
        rows.append(
            {
                "prompt": fill(template, prompt),
                "question": prompt,
                "answer": "",
                "difficulty": len(steps),
                "completions": [text],
                "tokens": [0],
                "truncated": [labels[-1] < 0.5],
                "steps": [[(end, float(label)) for end, label in zip(ends, labels, strict=True)]],
            }
        )
    return rows


def _agree(steps: Any, labels: Any) -> bool:
    if not (isinstance(steps, list) and isinstance(labels, list) and len(steps) == len(labels) > 0):
        return False
    return all(isinstance(label, int | float) and 0 <= label <= 1 for label in labels)
