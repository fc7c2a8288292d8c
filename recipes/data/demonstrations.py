"""Demonstrations: prompts with completions to imitate, of another stage, of a world or of a Hub dataset."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recipes.data import corpora, hub
from recipes.runtime import rows as files
from recipes.worlds.text import prompt

FILE = "data.jsonl"
COLUMNS = ("prompt", "completion", "question", "answer", "difficulty")


def save(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write the COLUMNS of `rows` to `folder`/data.jsonl, wholly or not at all."""
    files.save(rows, COLUMNS, folder, FILE)


def load(metrics_json: Path) -> list[dict[str, Any]]:
    """The rows that an upstream stage has saved.

    Raises UserError where they are missing or changed, or where the stage has made something else.
    """
    return files.load(metrics_json, FILE, COLUMNS, "data")


def of_task(config: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    """Demonstrations, prompt and completion, of a stage that names a `task`.

    A world's, by `template` and `corpus`; or those of a Hub dataset, whose columns the task names, with
    `template` around the prompt; of a conversation of one request and one reply, the reply. Another
    conversation has completion None: before its last turn is more than the prompt. Raises UserError for a
    column that is missing or a dataset with fewer rows than `problems`.
    """
    task = config["task"]
    if "world" in task:
        return [{"prompt": before, "completion": after} for before, after in corpora.documents(config, seed)]
    given = hub.dataset(task, ("prompt", "completion"))
    hub.enough_rows(task, len(given), config.get("problems"))
    found = []
    for row in given.select(range(config.get("problems") or len(given))):
        before = prompt(config.get("template", "{question}"), str(row[task["prompt"]]))
        found.append({"prompt": before, "completion": _reply(row[task["completion"]])})
    return found


def _reply(completion: Any) -> str | None:
    if not isinstance(completion, list):
        return str(completion or "")
    single = [turn["role"] for turn in completion] == ["user", "assistant"]
    return str(completion[-1]["content"] or "") if single else None


def usable(rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The rows to learn from, and how many are not: `empty`, or `multi-turn`."""
    why = [_fault(row["completion"]) for row in rows]
    return [row for row, bad in zip(rows, why, strict=True) if not bad], dict(Counter(filter(None, why)))


def _fault(completion: str | None) -> str:
    if completion is None:
        return "multi-turn"
    return "" if completion.strip() else "empty"
