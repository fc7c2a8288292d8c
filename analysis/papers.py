"""The page results/published/papers.md: what papers state, which of it is tested here, and the verdicts.

papers.yaml lists the statements of each paper (its tables, figures and claims), each with the claims of
recipes that test it or the reason why none does. Every verdict comes from a record.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from analysis import squares
from analysis.gallery import scoreboard
from analysis.page import markdown
from analysis.squares import NO_CLAIM
from analysis.statements import Answer, Answers, Group, Statement, table
from analysis.verdicts import whose
from analysis.verdicts.claims import NOT_TESTED
from analysis.verdicts.rule import OPEN
from encore.recipe.claims import OURS
from encore.recipe.graph import Graph

FILE = Path(__file__).with_suffix(".yaml")
PICTURE = "papers.svg"
DIVIDED = "several claims, with more than one verdict"
HEAD = f"""# What papers say, and how much of it is tested here

![A row of squares for each paper, coloured by verdict: the table below has their counts]({PICTURE})

A square is a table, figure or claim of a paper, in the order of the paper's list below. A verdict links to
its record, whose name ends in the scale. At `cpu` and `small`, with models of a tenth of a million to 135
million parameters, verdicts say whether a mechanism is at work there, not whether the paper's number is
right. A claim may ask the opposite of a statement: its own sentence stands beside it.
[What the words mean](../../docs/verdicts.md). Written by `python -m analysis.publish --index` from
[`analysis/papers.yaml`](../../analysis/papers.yaml).

## Counts

*With a claim*: a recipe has a claim for the statement, at whatever scale. *Tested*: one of the claims has
been run, and its precondition was met. *Decided*: one of the claims has a verdict other than open.
"""
OTHERS = """## Other papers

Recipes have single claims of these papers too.
"""


class Counts(NamedTuple):
    """The number of a paper's statements, and how many have a claim, are tested, are decided (see HEAD)."""

    statements: int
    encoded: int
    tested: int
    decided: int


def page(papers: Sequence[Group], answered: Answers, graph: Graph) -> str:
    """Return the page as Markdown: counts, a table for each paper, and the claims of further papers."""
    parts = [HEAD, _counted(papers, answered)]
    for paper in papers:
        numbered = [
            statement.model_copy(update={"says": f"{number}. {statement.says}"})
            for number, statement in enumerate(paper.statements, 1)
        ]
        title = f"## {paper.name}\n\n[{scoreboard.label(paper.url)}]({paper.url})\n"
        parts.append(f"{title}\n{table('the paper', numbered, answered)}")
    return "\n".join([*parts, OTHERS, _others(papers, answered, graph)])


def picture(papers: Sequence[Group], answered: Answers) -> str:
    """Return a picture as SVG, with a row of squares for each paper."""
    rows = [
        squares.Row(paper.name, [_outcome(statement, answered) for statement in paper.statements])
        for paper in papers
    ]
    return squares.draw(rows, DIVIDED)


def counts(paper: Group, answered: Answers) -> Counts:
    """Return how many statements a paper has, and how many have a claim, are tested and are decided."""
    outcomes = [set(_outcome(statement, answered)) for statement in paper.statements]
    encoded = [words for words in outcomes if words != {NO_CLAIM}]
    tested = [words for words in encoded if words != {NOT_TESTED}]
    decided = [words for words in tested if words != {OPEN}]
    return Counts(*map(len, (outcomes, encoded, tested, decided)))


def _outcome(statement: Statement, answered: Answers) -> list[str]:
    """Return the verdicts on the tested claims of a statement; without any, [NOT_TESTED] or [NO_CLAIM]."""
    if not statement.claims:
        return [NO_CLAIM]
    words = [answer.word for answer in _judged(statement.claims, answered) if answer.word != NOT_TESTED]
    return words or [NOT_TESTED]


def _judged(places: Sequence[str], answered: Answers) -> list[Answer]:
    """Return the answers to claims (recipe/claim) that come from records."""
    return [answer for place in places for answer in answered[place] if answer.record]


def _counted(papers: Sequence[Group], answered: Answers) -> str:
    head = ("paper", "statements", "with a claim", "tested", "decided", "verdicts", "claims without a record")
    rows: list[tuple[str, ...]] = [head, ("---", *("---:",) * 4, "---", "---:")]
    numbers = [counts(paper, answered) for paper in papers]
    for paper, number in zip(papers, numbers, strict=True):
        places = [place for statement in paper.statements for place in statement.claims]
        judged = _judged(places, answered)
        waiting = sum(not answer.record for place in places for answer in answered[place])
        told = whose.counts(judged) if judged else ""
        rows.append((paper.name, *map(str, number), told, str(waiting)))
    sums = [str(sum(column)) for column in zip(*numbers, strict=True)]
    return markdown.lines([*rows, ("all", *sums, "", "")])


def _others(papers: Sequence[Group], answered: Answers, graph: Graph) -> str:
    """Return a table of the papers that papers.yaml lacks, with the verdicts on their claims."""
    listed = {paper.url for paper in papers}
    places = defaultdict(list)
    for url, place in _claimed(graph):
        if url not in listed:
            places[url].append(place)
    rows = [("paper", "claims", "verdicts"), ("---", "---:", "---")]
    for url in sorted(places):
        judged = _judged(places[url], answered)
        told = whose.counts(judged) if judged else "no record yet"
        rows.append((f"[{scoreboard.label(url)}]({url})", str(len(places[url])), told))
    return markdown.lines(rows)


def _claimed(graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield the address of the paper and `recipe/claim` for each claim that a paper makes."""
    for name, recipe in graph.recipes.items():
        for claim in recipe.document.claims.values():
            if claim.paper != OURS:
                yield claim.url, f"{name}/{claim.id}"
