"""Demonstrations: prompts with completions to imitate, from another stage, a world or a Hub dataset."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from encore.data import columns, corpora, hub
from encore.data.chat import Chat, Exchange, Message
from encore.errors import UserError
from encore.runtime import rows as files
from encore.worlds.text import prompt


class Demonstration(TypedDict):
    """A row. Those that a stage has made carry their problem too."""

    prompt: str
    completion: Any  # a text; None for a conversation of several turns, which `usable` leaves out
    question: NotRequired[str]
    answer: NotRequired[str]
    difficulty: NotRequired[int]
    further: NotRequired[list[Exchange]]  # the rest of a dialogue; its completions are learnt too
    fault: NotRequired[str]  # why `usable` leaves it out


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


def sources(
    config: Mapping[str, Any], data: Path | None, seed: int, tokenizer: Any = None
) -> dict[str, list[Demonstration]]:
    """Name -> rows of each source of a stage that takes several.

    The first is `data`, rows of another stage (its metrics.json), or else `task`, the stage's own; of either
    the first `config["problems"]`. The others are those of `config["also"]`: one with a `share` is so large
    that it has this share of all rows. `tokenizer`: the policy's, for `chat`. Raises UserError where a source
    has fewer rows than asked for.
    """
    if data is None:
        rows = {"task": of_task(config, seed, tokenizer)}
    else:
        given, most = load(data), config.get("problems")
        if most is not None and most > len(given):
            raise UserError(f"problems: {most} asked, but {data} has {len(given)} rows")
        rows = {"data": given[:most]}
    also = config.get("also", {})
    shares = {name: source["share"] for name, source in also.items() if "share" in source}
    rows |= {
        name: _also(name, source, seed, tokenizer) for name, source in also.items() if name not in shares
    }
    total = sum(map(len, rows.values())) / (1 - sum(shares.values()))
    for name, share in shares.items():
        rows[name] = _also(name, _sized(also[name], max(1, round(share * total))), seed, tokenizer)
    return rows


def _also(name: str, source: Mapping[str, Any], seed: int, tokenizer: Any) -> list[Demonstration]:
    try:
        return of_task(source, seed, tokenizer)
    except UserError as error:
        raise UserError(f"also.{name}.{error}") from None


def _sized(source: Mapping[str, Any], size: int) -> Mapping[str, Any]:
    """`source` with so many rows."""
    if "world" in source["task"]:
        return {**source, "corpus": {**source["corpus"], "documents": size}}
    return {**source, "problems": size}


def of_task(config: Mapping[str, Any], seed: int, tokenizer: Any = None) -> list[Demonstration]:
    """Demonstrations, prompt and completion, for a stage that names a `task`.

    For a world, documents by `template` and `corpus`. For a data set, the columns that the task names, with
    `template` around the prompt. Either column may hold conversations: of one request and one reply the
    prompt is the request and the completion the reply; of any other the completion is None. By `chat`, every
    reply of a conversation is learnt, as `tokenizer`'s chat template writes it. Raises UserError for a column
    that is missing or a data set with fewer rows than `problems`.
    """
    task = config["task"]
    if "world" in task:
        return [{"prompt": before, "completion": after} for before, after in corpora.documents(config, seed)]
    dataset = hub.load(task, ("prompt", "completion"))
    hub.require_rows(task, len(dataset), config.get("problems"))
    rows: list[Demonstration] = []
    chosen = dataset.select(range(config.get("problems") or len(dataset)))
    if "chat" in config:
        return _by_chat(chosen, config, tokenizer)
    for row in chosen:
        asked = columns.text(row, task["prompt"])
        before = prompt(config.get("template", "{question}"), asked)
        rows.append({"prompt": before, "completion": _reply(row[task["completion"]]), "question": asked})
    return rows


def _reply(completion: Any) -> str | None:
    if not isinstance(completion, list):
        return str(completion or "")
    turns = columns.turns(completion)
    return turns[-1]["content"] if [turn["role"] for turn in turns] == ["user", "assistant"] else None


def exchanges(row: Demonstration) -> list[Exchange]:
    """All prompts and completions of a row, in turn."""
    return [(row["prompt"], row["completion"]), *row.get("further", [])]


def usable(rows: Sequence[Demonstration]) -> tuple[list[Demonstration], dict[str, int]]:
    """The rows to learn from, and counts of the others: `empty` and `multi-turn`; by chat, in place of the
    latter, `malformed` (turns out of order) and `unreasoned` (without the thinking that the chat template
    itself begins)."""
    faults = [row.get("fault") or _fault(row["completion"]) for row in rows]
    good = [row for row, fault in zip(rows, faults, strict=True) if not fault]
    return good, dict(Counter(filter(None, faults)))


def _fault(completion: str | None) -> str:
    if completion is None:
        return "multi-turn"
    return "" if completion.strip() else "empty"


# -- conversations -------------------------------------------------------------------------------------------


def _by_chat(given: Iterable[Any], config: Mapping[str, Any], tokenizer: Any) -> list[Demonstration]:
    """A row for each document of each conversation, or one that says what is wrong with it."""
    task = config["task"]
    keys = config["chat"] if isinstance(config["chat"], Mapping) else {}
    chat, user = Chat(tokenizer, keys.get("system")), keys.get("user", "{question}")
    rows: list[Demonstration] = []
    for row in given:
        asked = row[task["prompt"]] if task["prompt"] in row else columns.text(row, task["prompt"])
        turns = conversation(asked, row[task["completion"]])
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
    """The turns of a dataset's row up to the last reply: those of both columns, each a text or a list of
    turns, or those of `completion` alone where it has the whole conversation."""
    turns = _turns(completion, "assistant")
    if not turns or turns[0]["role"] == "assistant":
        turns = _turns(asked, "user") + turns
    while turns and turns[-1]["role"] != "assistant":
        turns.pop()
    return turns


def _turns(given: Any, role: str) -> list[Message]:
    if not isinstance(given, list):
        return [{"role": role, "content": str(given or "")}]
    return columns.turns(given)


def _misplaced(turns: Sequence[Message]) -> str:
    """What is wrong with a conversation: requests and replies must alternate, and no reply be empty."""
    roles = [turn["role"] for turn in turns]
    spoken = roles[1:] if roles[:1] == ["system"] else roles
    if not spoken or spoken != ["user", "assistant"] * (len(spoken) // 2):
        return "malformed"
    blank = any(turn["role"] == "assistant" and not turn["content"].strip() for turn in turns)
    return "empty" if blank else ""


def _asked(turns: Sequence[Message], user: str) -> list[Message]:
    """The conversation with the text `user` around its first request."""
    first = next(place for place, turn in enumerate(turns) if turn["role"] == "user")
    request = {"role": "user", "content": prompt(user, turns[first]["content"])}
    return [*turns[:first], request, *turns[first + 1 :]]
