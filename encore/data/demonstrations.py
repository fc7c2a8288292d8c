"""Demonstrations: prompts with completions to imitate, from another stage, a world or a Hub dataset."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from encore.data import columns, corpora, hub
from encore.data.chat import Chat, Exchange, Message
from encore.errors import UserError
from encore.recipe import form
from encore.recipe.base import present
from encore.recipe.corpus import DemonstrationSource
from encore.recipe.kinds.sft import SftStage
from encore.recipe.task import DemonstrationRows, WorldTask
from encore.runtime import rows as files
from encore.worlds.text import prompt


class Demonstration(TypedDict):
    """A row of demonstrations; if a stage has made it, it also has question, answer and difficulty."""

    prompt: str
    completion: Any  # a text; None for a conversation of several turns, which `usable` leaves out
    question: NotRequired[str]
    answer: NotRequired[str]
    difficulty: NotRequired[int]
    further: NotRequired[list[Exchange]]  # the rest of a dialogue, whose completions are learnt too
    fault: NotRequired[str]  # the reason why `usable` leaves the row out


FILE = "data.jsonl"
COLUMNS = ("prompt", "completion", "question", "answer", "difficulty")


def save(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write the COLUMNS of `rows` to `folder`/data.jsonl, either completely or not at all."""
    files.save(rows, COLUMNS, folder, FILE)


def load(metrics_json: Path) -> list[Demonstration]:
    """Return the rows that an upstream stage has saved.

    Raises UserError if they are missing or changed, or if the stage has made something else.
    """
    return cast(list[Demonstration], files.load(metrics_json, FILE, COLUMNS, "data"))


def sources(
    stage: SftStage, data: Path | None, seed: int, tokenizer: Any = None
) -> dict[str, list[Demonstration]]:
    """Return source -> rows, for all sources of a stage.

    The first source is called `data` if another stage made its rows (argument `data`: its metrics.json), and
    else `task`. It gives its first `stage.problems` rows. `stage.also` has the other sources; if one has a
    `share`, it gives as many rows as make this share of all. `tokenizer` is the policy's, for `chat`. Raises
    UserError if a source has too few rows.
    """
    if data is None:
        rows = {"task": of_task(stage, seed, tokenizer)}
    else:
        first, most = load(data), stage.problems
        if most is not None and most > len(first):
            raise UserError(f"problems: {most} asked, but {data} has {len(first)} rows")
        rows = {"data": first[:most]}
    shares = {name: source.share for name, source in stage.also.items() if source.share is not None}
    for name, source in stage.also.items():
        if name not in shares:
            rows[name] = _also(name, source, seed, tokenizer, None)
    total = sum(map(len, rows.values())) / (1 - sum(shares.values()))
    for name, share in shares.items():
        rows[name] = _also(name, stage.also[name], seed, tokenizer, max(1, round(share * total)))
    return rows


def _also(
    name: str, source: DemonstrationSource, seed: int, tokenizer: Any, size: int | None
) -> list[Demonstration]:
    try:
        return of_task(source, seed, tokenizer, size)
    except UserError as error:
        raise UserError(f"also.{name}.{error}") from None


def of_task(
    source: DemonstrationSource, seed: int, tokenizer: Any = None, size: int | None = None
) -> list[Demonstration]:
    """Return demonstrations, prompt and completion, of a world or a data set.

    A world writes documents by `template` and `corpus`. In a data set, the task names the columns, and
    `template` is put around the prompt. Either column may hold conversations. If a conversation has a single
    request and reply, the prompt is the request and the completion the reply; otherwise the completion is
    None. With `chat`, every reply of a conversation is learnt, as the chat template of `tokenizer` writes it.
    `size` is the number of rows if it differs from the source's. Raises UserError if a column is missing or
    the data set has fewer rows than asked for.
    """
    task = source.task
    assert task is not None
    if isinstance(task, WorldTask):
        pairs = corpora.documents(task, source.form.template, present(source.corpus), seed, size)
        return [{"prompt": before, "completion": after} for before, after in pairs]
    dataset, asked_for = hub.load(task, ("prompt", "completion")), size or source.problems
    hub.require_rows(task, len(dataset), asked_for)
    rows: list[Demonstration] = []
    chosen = dataset.select(range(asked_for or len(dataset)))
    if source.form.chat:
        return _by_chat(chosen, task, source.form.chat, tokenizer)
    for row in chosen:
        asked = columns.text(row, task.prompt)
        before = prompt(source.form.template, asked)
        rows.append({"prompt": before, "completion": _reply(row[task.completion]), "question": asked})
    return rows


def _reply(completion: Any) -> str | None:
    if not isinstance(completion, list):
        return str(completion or "")
    turns = columns.turns(completion)
    return turns[-1]["content"] if [turn["role"] for turn in turns] == ["user", "assistant"] else None


def exchanges(row: Demonstration) -> list[Exchange]:
    """Return (prompt, completion) of each turn of a row, in order."""
    return [(row["prompt"], row["completion"]), *row.get("further", [])]


def usable(rows: Sequence[Demonstration]) -> tuple[list[Demonstration], dict[str, int]]:
    """Return the rows to learn from, and how many of the other rows were left out for each reason.

    Reasons are `empty` and, without `chat`, `multi-turn`. With `chat` they are also `malformed` (turns out of
    order) and `unreasoned` (a reply lacks the thinking that the chat template itself begins).
    """
    faults = [row.get("fault") or _fault(row["completion"]) for row in rows]
    good = [row for row, fault in zip(rows, faults, strict=True) if not fault]
    return good, dict(Counter(filter(None, faults)))


def _fault(completion: str | None) -> str:
    if completion is None:
        return "multi-turn"
    return "" if completion.strip() else "empty"


# -- conversations -------------------------------------------------------------------------------------------


def _by_chat(
    source_rows: Iterable[Any], task: DemonstrationRows, keys: form.Chat, tokenizer: Any
) -> list[Demonstration]:
    """Return a row for each document of each conversation; a row with a `fault` if it has no document."""
    chat, user = Chat(tokenizer, keys.system), keys.user or "{question}"
    rows: list[Demonstration] = []
    for row in source_rows:
        asked = row[task.prompt] if task.prompt in row else columns.text(row, task.prompt)
        turns = conversation(asked, row[task.completion])
        question = next((turn["content"] for turn in turns if turn["role"] == "user"), "")
        fault = _misplaced(turns)
        documents = [] if fault else chat.exchanges(_asked(turns, user))
        rows += [
            {"prompt": before, "completion": reply, "question": question, "further": rest}
            for (before, reply), *rest in documents
        ]
        if not documents:
            fault = fault or "unreasoned"
            rows.append({"prompt": "", "completion": None, "question": question, "fault": fault})
    return rows


def conversation(asked: Any, completion: Any) -> list[Message]:
    """Return the turns of a conversation in a row of a data set, up to the last reply.

    The turns come from both columns, each a text or a list of turns, or from `completion` alone if it has the
    whole conversation.
    """
    turns = _turns(completion, "assistant")
    if not turns or turns[0]["role"] == "assistant":
        turns = _turns(asked, "user") + turns
    while turns and turns[-1]["role"] != "assistant":
        turns.pop()
    return turns


def _turns(content: Any, role: str) -> list[Message]:
    if not isinstance(content, list):
        return [{"role": role, "content": str(content or "")}]
    return columns.turns(content)


def _misplaced(turns: Sequence[Message]) -> str:
    """Return `malformed` if the roles of a conversation do not alternate, `empty` if a reply is, else ""."""
    roles = [turn["role"] for turn in turns]
    spoken = roles[1:] if roles[:1] == ["system"] else roles
    if not spoken or spoken != ["user", "assistant"] * (len(spoken) // 2):
        return "malformed"
    blank = any(turn["role"] == "assistant" and not turn["content"].strip() for turn in turns)
    return "empty" if blank else ""


def _asked(turns: Sequence[Message], user: str) -> list[Message]:
    """Return the conversation, its first request put into the template `user`."""
    first = next(place for place, turn in enumerate(turns) if turn["role"] == "user")
    request = {"role": "user", "content": prompt(user, turns[first]["content"])}
    return [*turns[:first], request, *turns[first + 1 :]]
