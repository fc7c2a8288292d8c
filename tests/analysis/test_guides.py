"""The page on what guides say: every claim that it names is made, and every verdict is the record's."""

from pathlib import Path

import pytest
from papers import GRAPH, RECIPES

from analysis import guides, statements
from analysis.gallery.scoreboard import marked
from analysis.verdicts import claims

RECORDS = Path(__file__).parents[2] / "results/published"


@pytest.fixture(scope="module")
def page() -> str:
    return guides.page(statements.read_groups(guides.FILE, GRAPH), statements.answers(RECORDS, GRAPH))


def test_the_committed_page_is_what_the_records_say(page):
    assert (RECORDS / "guides.md").read_text(encoding="utf-8") == page


def test_every_verdict_is_the_records(page):
    """Read off claims.csv, line by line, as a reader would who does not trust the page."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    said = {cells[-2]: cells[-1] for cells in rows if "](" in cells[-1]}
    checked = 0
    for record in sorted({verdict.split("](")[1].split(")")[0] for verdict in said.values()}):
        recipe = RECIPES[record.removesuffix("-cpu")]
        words = {
            verdict.id: verdict.word for verdict in claims.read_verdicts(RECORDS / record / "claims.csv")
        }
        for claim in recipe.claims("cpu"):
            verdict = said.get(marked(claim), "")
            if f"]({record})" in verdict:
                assert f"**{words[claim.id]}**" in verdict, claim.id
                checked += 1
    assert checked > 80
