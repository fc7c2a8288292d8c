"""The page results/published/guides.md: statements of guides, beside the claims that test them.

guides.yaml lists the claims that test a statement; every verdict comes from a record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from analysis.gallery import scoreboard
from encore.errors import UserError, known
from encore.recipe.graph import Graph

SCALE = "cpu"
FILE = Path(__file__).with_suffix(".yaml")
HEAD = """# What guides say, and what we found

Guides and lectures on reinforcement learning for language models state much and measure little. Each
statement stands beside the claims that ask it here, at scale `cpu`: models of a tenth of a million to half a
million parameters on procedural tasks. [What the words mean](../../docs/verdicts.md). A claim may ask the
opposite of a statement: its own sentence stands beside it. Written by `python -m analysis.publish --index`
from [`analysis/guides.yaml`](../../analysis/guides.yaml).
"""
UNJUDGED = "no record yet"


@dataclass(frozen=True)
class Statement:
    """A statement of guides. `claims` are recipe/claim; `why` is the reason if there are no claims."""

    topic: str
    says: str
    claims: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Answer:
    """A claim that tests a statement: its text, its verdict, its effect, and the record that judges it."""

    says: str
    word: str
    ours: str
    record: str  # name of the record; "" without one


def statements(graph: Graph) -> list[Statement]:
    """Return the statements of guides.yaml that these recipes test, or that have a reason why none does.

    Raises UserError if a claim is named that its recipe does not make.
    """
    read = [
        entry
        for entry in _read_statements()
        if {place.partition("/")[0] for place in entry.claims} <= {*graph.recipes}
    ]
    ids = {name: [claim.id for claim in recipe.claims(SCALE)] for name, recipe in graph.recipes.items()}
    for statement in read:
        for place in statement.claims:
            recipe, _, claim = place.partition("/")
            known(f"{FILE.name}: {statement.says}", [claim], ids[recipe], f"claim of {recipe}")
        if bool(statement.claims) == bool(statement.why):
            raise UserError(f"{FILE.name}: {statement.says}: expected either claims or why")
    return read


def _read_statements() -> Iterator[Statement]:
    for topic in yaml.safe_load(FILE.read_text(encoding="utf-8")):
        for entry in topic["statements"]:
            yield Statement(
                topic["topic"], entry["says"], tuple(entry.get("claims", ())), entry.get("why", "")
            )


def answers(folder: Path, graph: Graph) -> dict[str, Answer]:
    """Return recipe/claim -> the result of the claim at scale cpu in the records in `folder`."""
    judged = {f"{line.recipe}/{line.id}": line for line in scoreboard.lines(folder, graph)}
    result = {}
    for name, recipe in graph.recipes.items():
        for claim in recipe.claims(SCALE):
            place = f"{name}/{claim.id}"
            line = judged.get(place)
            verdict = (line.word, line.ours, line.record) if line else (UNJUDGED, "", "")
            result[place] = Answer(claim.says, *verdict)
    return result


def page(read: Sequence[Statement], answered: dict[str, Answer]) -> str:
    """Return the page as Markdown: a table for each topic."""
    parts = [HEAD]
    for topic in dict.fromkeys(statement.topic for statement in read):
        rows = [row for statement in read if statement.topic == topic for row in _rows(statement, answered)]
        lines = ["| a guide says | we ask | we found |", "|---|---|---|", *rows]
        parts.append(f"## {topic}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _rows(statement: Statement, answered: dict[str, Answer]) -> Iterator[str]:
    """Yield a row for each claim; the first row has the statement."""
    if statement.why:
        yield f"| {statement.says} | {statement.why} | |"
    for place in statement.claims:
        says = statement.says if place == statement.claims[0] else ""
        yield f"| {says} | {answered[place].says} | {_verdict(answered[place])} |"


def _verdict(answer: Answer) -> str:
    if not answer.record:
        return answer.word
    return f"[**{answer.word}**]({answer.record}) {answer.ours}".rstrip()
