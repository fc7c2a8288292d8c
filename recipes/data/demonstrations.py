"""Demonstrations: prompts with completions to imitate, from another stage, a world or a Hub dataset."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from recipes.data import columns, corpora, hub
from recipes.errors import UserError
from recipes.runtime import rows as files
from recipes.worlds.text import prompt


class Demonstration(TypedDict):
    """A row. Those that a stage has made carry their problem too."""

    prompt: str
    completion: Any  # a text; None for a conversation of several turns, which `usable` leaves out
    question: NotRequired[str]
    answer: NotRequired[str]
    difficulty: NotRequired[int]


FILE = "data.jsonl"
COLUMNS = ("prompt", "completion", "question", "answer", "difficulty")


def save(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write the COLUMNS of `rows` to `folder`/data.jsonl, either completely or not at all."""
    files.save(rows, COLUMNS, folder, FILE)


def load(metrics_json: Path) -> list[Demonstration]:
    """The rows that an upstream stage has saved.

    Raises UserError where they are missing or changed, or where the stage has made something else.
    """
    return cast(list[Demonstration], files.load(metrics_json, FILE, COLUMNS, "data"))


def sources(config: Mapping[str, Any], data: Path | None, seed: int) -> dict[str, list[Demonstration]]:
    """Name -> rows of each source of a stage that takes several.

    The first is `data`, rows of another stage (its metrics.json), or else `task`, the stage's own; of either
    the first `config["problems"]`. The others are those of `config["also"]`: one with a `share` is so large
    that it has this share of all rows. Raises UserError where a source has fewer rows than asked for.
    """
    if data is None:
        rows = {"task": of_task(config, seed)}
    else:
        given, most = load(data), config.get("problems")
        if most is not None and most > len(given):
            raise UserError(f"problems: {most} asked, but {data} has {len(given)} rows")
        rows = {"data": given[:most]}
    also = config.get("also", {})
    shares = {name: source["share"] for name, source in also.items() if "share" in source}
    rows |= {name: _also(name, source, seed) for name, source in also.items() if name not in shares}
    total = sum(map(len, rows.values())) / (1 - sum(shares.values()))
    for name, share in shares.items():
        rows[name] = _also(name, _sized(also[name], max(1, round(share * total))), seed)
    return rows


def _also(name: str, source: Mapping[str, Any], seed: int) -> list[Demonstration]:
    try:
        return of_task(source, seed)
    except UserError as error:
        raise UserError(f"also.{name}.{error}") from None


def _sized(source: Mapping[str, Any], size: int) -> Mapping[str, Any]:
    """`source` with so many rows."""
    if "world" in source["task"]:
        return {**source, "corpus": {**source["corpus"], "documents": size}}
    return {**source, "problems": size}


def of_task(config: Mapping[str, Any], seed: int) -> list[Demonstration]:
    """Demonstrations, prompt and completion, for a stage that names a `task`.

    For a world, documents by `template` and `corpus`. For a data set, the columns that the task names, with
    `template` around the prompt. Either column may hold conversations: of one request and one reply the
    prompt is the request and the completion the reply; of any other the completion is None. Raises UserError
    for a column that is missing or a data set with fewer rows than `problems`.
    """
    task = config["task"]
    if "world" in task:
        return [{"prompt": before, "completion": after} for before, after in corpora.documents(config, seed)]
    dataset = hub.load(task, ("prompt", "completion"))
    hub.require_rows(task, len(dataset), config.get("problems"))
    rows: list[Demonstration] = []
    for row in dataset.select(range(config.get("problems") or len(dataset))):
        asked = columns.text(row, task["prompt"])
        before = prompt(config.get("template", "{question}"), asked)
        rows.append({"prompt": before, "completion": _reply(row[task["completion"]]), "question": asked})
    return rows


def _reply(completion: Any) -> str | None:
    if not isinstance(completion, list):
        return str(completion or "")
    turns = columns.turns(completion)
    return turns[-1]["content"] if [turn["role"] for turn in turns] == ["user", "assistant"] else None


def usable(rows: Sequence[Demonstration]) -> tuple[list[Demonstration], dict[str, int]]:
    """The rows to learn from, and counts of the others: `empty` and `multi-turn`."""
    faults = [_fault(row["completion"]) for row in rows]
    good = [row for row, fault in zip(rows, faults, strict=True) if not fault]
    return good, dict(Counter(filter(None, faults)))


def _fault(completion: str | None) -> str:
    if completion is None:
        return "multi-turn"
    return "" if completion.strip() else "empty"
