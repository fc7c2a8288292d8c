"""The page on papers: no claim is forgotten, counts are those of the tables, and so is the picture."""

import re
from collections import Counter
from pathlib import Path

import pytest
from lxml import etree
from papers import GRAPH, RECIPES

from analysis import papers, squares, statements
from analysis.page.palette import VERDICT_COLOURS
from analysis.squares import NO_CLAIM, Row
from analysis.statements import Answer, Group, Statement
from encore.recipe.claims import OURS

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "results/published"
LISTED = statements.read_groups(papers.FILE, GRAPH)
ANSWERED = statements.answers(RECORDS, GRAPH)
PAGE = papers.page(LISTED, ANSWERED, GRAPH)


def rows(text: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_committed_page_and_picture_are_what_the_records_say():
    assert (RECORDS / "papers.md").read_text(encoding="utf-8") == PAGE
    assert (RECORDS / papers.PICTURE).read_text(encoding="utf-8") == papers.picture(LISTED, ANSWERED)


def test_every_claim_of_a_listed_paper_stands_under_it():
    stated = {
        paper.url: {place for statement in paper.statements for place in statement.claims} for paper in LISTED
    }
    forgotten = [
        f"{name}/{claim.id}"
        for name, recipe in RECIPES.items()
        for claim in recipe.document.claims.values()
        if claim.paper != OURS and f"{name}/{claim.id}" not in stated.get(claim.url, {f"{name}/{claim.id}"})
    ]
    assert not forgotten


def test_every_paper_of_the_readme_is_listed():
    table = (ROOT / "README.md").read_text(encoding="utf-8").split("## Recipes")[1].split("## Your own")[0]
    named = set(re.findall(r"arxiv\.org/abs/([\d.]+)", table))
    assert len(named) > 15
    assert named <= {paper.paper for paper in LISTED}


def test_every_other_paper_with_a_claim_has_a_row():
    listed = {paper.url for paper in LISTED}
    others = Counter(
        claim.url
        for recipe in RECIPES.values()
        for claim in recipe.document.claims.values()
        if claim.paper != OURS and claim.url not in listed
    )
    told = {
        name.split("](")[1].rstrip(")"): int(count) for name, count, _ in rows(section("Other papers"))[2:]
    }
    assert told == others


def test_the_counts_are_those_of_the_tables():
    """Counted anew from the page, by a reader who knows only its words."""
    for name, *numbers in rows(section("Counts"))[2:-1]:
        outcomes: list[set[str]] = []
        for cells in rows(section(name))[2:]:
            if re.match(r"\d+\. ", cells[0]):
                outcomes.append(set())
            outcomes[-1].add(cells[-1])
        # a reason leaves the last cell empty, and strip() then makes it the reason
        words = [{"".join(re.findall(r"\*\*(.+)\*\*", cell)) for cell in cells} for cells in outcomes]
        claims = [any("](" in cell or cell.startswith("no record") for cell in cells) for cells in outcomes]
        tested = [word - {"", "not tested"} for word in words]
        counted = [
            len(outcomes),
            sum(claims),
            sum(map(bool, tested)),
            sum(bool(word - {"open"}) for word in tested),
        ]
        assert counted == [int(number) for number in numbers[:4]], name


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        ([], (1, 0, 0, 0)),
        (["no record yet"], (1, 1, 0, 0)),
        (["not tested"], (1, 1, 0, 0)),
        (["open", "not tested"], (1, 1, 1, 0)),
        (["open", "reversed"], (1, 1, 1, 1)),
    ],
)
def test_a_statement_is_counted_by_its_claims(words, counts):
    places = tuple(f"r/{number}" for number, _ in enumerate(words))
    statement = Statement(says="A.", **({"claims": places} if words else {"why": "No arm."}))
    records = ["" if word == statements.UNJUDGED else "r-cpu" for word in words]
    answered = {
        place: [Answer("A.", word, "", record)]
        for place, word, record in zip(places, words, records, strict=True)
    }
    assert papers.counts(Group(name="P", statements=(statement,)), answered) == counts


def areas(svg: str) -> dict[str, list[float]]:
    """Return word -> the widths of its areas, in the order of the picture."""
    paths = etree.fromstring(svg.encode()).findall("{*}path")[: len(squares.WORDS)]
    for word, path in zip(squares.DECIDED, paths, strict=False):
        assert path.get("fill") == VERDICT_COLOURS[word]
    drawn = [re.findall(r"M[\d.]+ [\d.]+h([\d.]+)v", path.get("d")) for path in paths]
    return {
        word: [float(width) for width in widths] for word, widths in zip(squares.WORDS, drawn, strict=True)
    }


def test_a_square_is_divided_by_its_verdicts():
    drawn = areas(squares.draw([Row("P", [["open", "shown", "shown"], ["reversed"], [NO_CLAIM]])], "divided"))
    side = squares.SIDE
    assert drawn["shown"] == pytest.approx([2 * side / 3, side, side / 2], abs=0.1)  # two are of the legend
    assert drawn["open"] == pytest.approx([side / 3, side, side / 2], abs=0.1)
    assert drawn["reversed"] == drawn[NO_CLAIM] == [side, side]
    assert drawn["not tested"] == [side]


def test_the_picture_has_a_square_for_each_statement_and_is_small():
    svg = papers.picture(LISTED, ANSWERED)
    total = sum(sum(widths) for widths in areas(svg).values()) / squares.SIDE
    listed = sum(len(paper.statements) for paper in LISTED)
    assert total == pytest.approx(listed + len(squares.WORDS) + 1, abs=0.1)
    assert len(svg) < 20_000


def test_a_name_cannot_be_markup():
    svg = squares.draw([Row("<script>&", [["open"]])], "divided")
    assert "<script>" not in svg
    etree.fromstring(svg.encode())
