"""When the claims of each record were written: what is said agrees with the records."""

import re
from pathlib import Path

import pandas as pd
import pytest

from analysis.numbers.recorded import folders
from analysis.verdicts import claims, written

ROOT = Path(__file__).parents[3]
RECORDS = ROOT / "results/published"
ROWS = written.read_written(RECORDS).to_dict("records")


def test_every_record_with_claims_has_a_row():
    judged = [record.name for record in folders(RECORDS) if claims.read_verdicts(record / "claims.csv")]
    assert [row["record"] for row in ROWS] == judged


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["record"])
def test_a_row_agrees_with_the_record(row):
    """No run is older than the first; claims were fixed before it, unless something is said to be later."""
    runs = pd.read_csv(RECORDS / row["record"] / "runs.csv.xz")
    assert row["first_run"] <= runs.started[~runs.stage.str.contains("/")].min()
    assert (row["fixed"] < row["first_run"]) == (not row["later"])
    assert ("which are primary" in row["later"]) == (row["written"] == "partly after")


def test_the_page_and_the_list_say_the_same_of_a_record():
    lines = written.listed(RECORDS).splitlines()
    for row in ROWS:
        page, name = written.of_record(RECORDS / row["record"]), row["record"].removesuffix("-cpu")
        line = next(line for line in lines if re.search(rf"[:,] {name}(,| \(|$)", line))
        assert line.removeprefix("- ").partition(":")[0] in page
        assert row["fixed_commit"] in page
        assert row["first_run_commit"] in page


def test_of_records_without_the_file_nothing_is_said(tmp_path):
    assert written.listed(tmp_path) == written.of_record(tmp_path / "toy-cpu") == ""


@pytest.mark.parametrize("manual", ["docs/verdicts.md"])
def test_the_manual_leaves_it_to_the_records(manual):
    """Some records' claims were written partly after runs: a page must not say that all were before."""
    text = " ".join((ROOT / manual).read_text(encoding="utf-8").split())
    if any(row["written"] == "partly after" for row in ROWS):
        assert "results/published/README.md" in text
        assert "record by record" in text
