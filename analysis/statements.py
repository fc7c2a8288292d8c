"""Statements of papers and guides, beside the claims that test them here and the verdicts on these claims.

A YAML file lists the statements in named groups. Each statement has the claims that test it, or the reason
why no claim does. Every verdict comes from a record.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.gallery import scoreboard
from encore.errors import UserError, known
from encore.recipe.base import Items, Line, Model, Some
from encore.recipe.claims import Claim, Paper, address
from encore.recipe.document import read_content
from encore.recipe.graph import Graph
from encore.recipe.recipe import Recipe
from encore.recipe.strict_yaml import read_yaml

UNJUDGED = "no record yet"


class Statement(Model):
    """A statement: its text, its place in the paper, and the claims that test it or why no claim does."""

    says: Line
    where: Line | None = None  # section, table or figure of a paper
    claims: Items[Line] = ()  # each claim is written as recipe/claim
    why: Line | None = None  # why no claim tests the statement


class Group(Model):
    """Statements about one topic, or of one paper."""

    name: Line
    paper: Paper | None = None  # the paper, written as in the claims of recipes
    statements: Some[Statement]

    @property
    def url(self) -> str:
        """The address of the group's paper; "" if the group is about a topic."""
        return address(self.paper) if self.paper else ""


class Groups(Model):
    """The content of a file of statements."""

    groups: Some[Group]


@dataclass(frozen=True)
class Answer:
    """A claim that tests a statement: its text, its verdict, our difference, and the record they are from."""

    says: str
    word: str
    ours: str
    record: str  # name of the record; "" without one


Answers = dict[str, Sequence[Answer]]  # recipe/claim -> an answer for each record; there is at least one


def read_groups(file: Path, graph: Graph) -> list[Group]:
    """Return the groups of a file, without statements whose claims are of recipes that `graph` lacks.

    Raises UserError for a mistake in the file, for a claim that its recipe does not make, and for a statement
    that has neither claims nor a reason, or both.
    """
    try:
        groups = read_content({"groups": read_yaml(file)}, Groups).groups
    except UserError as error:
        raise UserError("\n".join(f"{file.name}: {line}" for line in error.lines)) from None
    return [
        group.model_copy(update={"statements": kept})
        for group in groups
        if (kept := tuple(_checked(group.statements, file.name, graph)))
    ]


def _checked(statements: Sequence[Statement], file: str, graph: Graph) -> Iterator[Statement]:
    for statement in statements:
        places = [place.split("/", 1) for place in statement.claims]
        if not {recipe for recipe, *_ in places} <= {*graph.recipes}:
            continue
        for recipe, *claim in places:
            made = [*graph.recipes[recipe].document.claims]
            known(f"{file}: {statement.says}", claim or [""], made, f"claim of {recipe}")
        if bool(places) == bool(statement.why):
            raise UserError(f"{file}: {statement.says}: expected either claims or why")
        yield statement


def answers(folder: Path, graph: Graph) -> Answers:
    """Return recipe/claim -> an answer for each record in `folder`; without a record, an answer saying so."""
    judged = defaultdict(list)
    for line in scoreboard.lines(folder, graph):
        answer = Answer(scoreboard.marked(line), line.word, line.ours, line.record)
        judged[f"{line.recipe}/{line.id}"].append(answer)
    return {
        place: judged[place] or [_unjudged(claim, recipe)]
        for name, recipe in graph.recipes.items()
        for claim in recipe.document.claims.values()
        for place in [f"{name}/{claim.id}"]
    }


def _unjudged(claim: Claim, recipe: Recipe) -> Answer:
    """Return the answer for a claim without a record; it names the claim's scales unless cpu is one."""
    scales = [scale for scale in recipe.scales if claim.is_at(scale)]
    word = UNJUDGED if "cpu" in scales else f"{UNJUDGED}, at scale {' or '.join(scales)}"
    return Answer(scoreboard.marked(claim), word, "", "")


def table(who: str, statements: Sequence[Statement], answered: Answers) -> str:
    """Return a Markdown table of statements with a row for each claim; `who`: `a guide` or `the paper`."""
    placed = any(statement.where for statement in statements)
    head = (f"{who} says", *(["where"] if placed else []), "we ask", "we found")
    rows = [head, ("---",) * len(head)]
    for statement in statements:
        first = (statement.says, *([statement.where or ""] if placed else []))
        for asked, verdict in _asked(statement, answered):
            rows.append((*first, asked, verdict))
            first = ("",) * len(first)
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def _asked(statement: Statement, answered: Answers) -> Iterator[tuple[str, str]]:
    """Yield the text and the verdict of each claim of a statement, or the reason why there is no claim."""
    if statement.why:
        yield statement.why, ""
    for place in statement.claims:
        for answer in answered[place]:
            yield answer.says, _verdict(answer)


def _verdict(answer: Answer) -> str:
    if not answer.record:
        return answer.word
    return f"[**{answer.word}**]({answer.record}) {answer.ours}".rstrip()
