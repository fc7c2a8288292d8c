"""The adversarial mirror: the lot is of shown findings, and what became of them is told as it is."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from papers import GRAPH

from analysis.gallery import mirror
from analysis.verdicts import claims
from encore.errors import UserError

RECORDS = Path(__file__).parents[3] / "results/published"


@pytest.fixture
def folder(tmp_path):
    """The records, without their pages and numbers, and without a lot."""
    for record in RECORDS.glob("*-cpu"):
        (tmp_path / record.name).mkdir()
        for name in ("claims.csv", "runs.csv.xz", "numbers.csv.xz", "registered.yaml"):
            if (record / name).exists():
                shutil.copy(record / name, tmp_path / record.name)
    return tmp_path


def lot(*drawn: tuple[str, str]) -> pd.DataFrame:
    rows = [[record, claim, "heldout/accuracy", 0.3, 0.2, 0.4, 8] for record, claim in drawn]
    return pd.DataFrame(rows, columns=mirror.COLUMNS)


def test_the_lot_is_of_shown_findings_and_always_the_same(folder):
    drawn = mirror.draw(folder, GRAPH)
    assert len(drawn.drop_duplicates(["record", "claim"])) == mirror.DRAWN
    pd.testing.assert_frame_equal(drawn, mirror.draw(folder, GRAPH))
    for row in drawn.to_dict("records"):
        recipe = GRAPH.recipes[row["record"].rpartition("-")[0]]
        assert recipe.document.claims[row["claim"]].kind == "finding"
        judged = {v.id: v for v in claims.read_verdicts(folder / row["record"] / "claims.csv")}
        assert judged[row["claim"]].word == "shown"


def test_a_lot_is_not_drawn_twice(folder):
    (folder / mirror.FILE).write_text("drawn")
    with pytest.raises(UserError, match="is not drawn again"):
        mirror.write(folder)


def test_a_claim_is_tried_again_once_its_record_has_a_base_model_for_each_seed(folder, monkeypatch):
    drawn = [("r1_zero-cpu", "rl-lifts-accuracy"), ("dapo-cpu", "soft-punishment-cuts-truncation")]
    lot(*drawn).to_csv(folder / mirror.FILE, index=False)
    monkeypatch.setattr(mirror, "shares_base", lambda run: run.name != "r1_zero")
    outcome = mirror.mirror(folder, GRAPH)
    judged = {v.id: v for v in claims.read_verdicts(folder / "r1_zero-cpu/claims.csv")}["rl-lifts-accuracy"]
    assert outcome.table["a base model for each seed"].tolist() == [judged.word, "not run yet"]
    assert "Of 2 claims" in outcome.said
    assert (
        f"1 have been run again with a base model for each seed; {judged.word == 'shown':d} of"
        in outcome.said
    )


def test_nothing_is_told_before_the_lot(folder):
    assert mirror.mirror(folder, GRAPH) is None
