"""The page on what guides say: every claim that it names is made, and every verdict is the record's."""

from pathlib import Path

import pytest
import yaml
from papers import RECIPES

from analysis import guides
from analysis.verdicts import claims
from encore.errors import UserError
from encore.recipe.graph import Graph

RECORDS = Path(__file__).parents[2] / "results/published"
GRAPH = Graph(RECIPES)


@pytest.fixture(scope="module")
def page() -> str:
    return guides.page(guides.statements(GRAPH), guides.answers(RECORDS, GRAPH))


def write(entry, folder, monkeypatch):
    path = folder / "guides.yaml"
    path.write_text(yaml.safe_dump([{"topic": "KL", "statements": [entry]}]), encoding="utf-8")
    monkeypatch.setattr(guides, "FILE", path)


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
            verdict = said.get(claim.says, "")
            if f"]({record})" in verdict:
                assert f"**{words[claim.id]}**" in verdict, claim.id
                checked += 1
    assert checked > 80


def test_every_statement_is_on_the_page_and_has_claims_or_a_reason():
    topics = yaml.safe_load(guides.FILE.read_text(encoding="utf-8"))
    assert len(guides.statements(GRAPH)) == sum(len(topic["statements"]) for topic in topics)
    for statement in guides.statements(GRAPH):
        assert bool(statement.claims) != bool(statement.why), statement.says


def test_a_claim_that_no_recipe_makes_is_told_in_one_line(tmp_path, monkeypatch):
    write({"says": "k3 is best.", "claims": ["bandit/k3-is-bost"]}, tmp_path, monkeypatch)
    with pytest.raises(UserError, match=r'guides\.yaml: k3 is best\.: unknown claim of bandit "k3-is-bost"'):
        guides.statements(GRAPH)


def test_a_statement_without_claim_or_reason_is_told(tmp_path, monkeypatch):
    write({"says": "k3 is best."}, tmp_path, monkeypatch)
    with pytest.raises(UserError, match=r"k3 is best\.: expected either claims or why"):
        guides.statements(GRAPH)


def test_a_claim_without_a_record_has_no_verdict(tmp_path):
    statement = guides.Statement("KL", "It helps.", ("objectives/kl-not-needed",), "")
    shown = guides.page([statement], guides.answers(tmp_path, GRAPH))
    (claim,) = [claim for claim in RECIPES["objectives"].claims("cpu") if claim.id == "kl-not-needed"]
    assert f"| It helps. | {claim.says} | {guides.UNJUDGED} |" in shown
