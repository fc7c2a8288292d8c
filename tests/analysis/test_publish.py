"""The record of a report: everything to judge it by, and nothing of a run whose code is unknown."""

import json
import math
import shutil
from pathlib import Path

import pandas as pd
import pytest

from analysis import publish
from analysis.numbers import table
from analysis.statistics.hypotheses import holm, p_claim
from analysis.verdicts import claims
from recipes.errors import UserError

RECORDS = sorted(Path(__file__).parents[2].glob("results/published/*/claims.csv"))


@pytest.fixture
def report(run):
    """What analyse leaves, as far as it is copied."""
    folder = run.root / "results/toy_zero/cpu/report"
    folder.mkdir(exist_ok=True)
    table.collect(run).to_csv(folder / "table.csv", index=False)
    for name in publish.TABLES:
        (folder / f"{name}.csv").write_text(f"{name}\n")
    return folder


def test_record_has_the_final_numbers_and_every_run(run, report, tmp_path):
    out = tmp_path / "published"
    publish.publish(run, out, "report")
    numbers, runs = pd.read_csv(out / "numbers.csv"), pd.read_csv(out / "runs.csv")
    final = table.final(table.collect(run))
    assert len(numbers) == len(final.drop_duplicates(["source", "metric"])) < len(final)
    assert set(numbers.seed) == {0, 1, 2}
    before = numbers[(numbers.node == "before") & (numbers.metric == "heldout/accuracy")]
    assert before[["arm", "seed"]].values.tolist() == [["base-recipe", 0], ["no-cot-base", 0]]  # the owners
    assert len(runs) == sum(node.kind == "stage" for node in run.all_nodes())
    assert json.loads(runs.hardware[0])
    assert (out / "claims.csv").read_text() == (report / "claims.csv").read_text()


def test_a_record_among_the_others_gets_its_row(run, report):
    folder = run.root / publish.RECORDS
    shutil.copyfile(RECORDS[0], report / "claims.csv")
    publish.publish(run, folder / "toy_zero-cpu", "report")
    text = (folder / "README.md").read_text()
    assert "| 3 | [toy_zero-cpu](toy_zero-cpu) |" in text


def test_a_table_that_the_report_has_not_leaves_the_record(run, report, tmp_path):
    (report / "labels.csv").unlink()
    (tmp_path / "labels.csv").write_text("from an earlier report")
    publish.publish(run, tmp_path, "report")
    assert not (tmp_path / "labels.csv").exists()
    assert not (tmp_path.parent / "README.md").exists()  # the index is that of results/published alone


def test_a_last_step_is_not_kept_beside_its_last_fifth():
    names = ["last/loss", "last_fifth/loss", "last/length/correct", "mean/clip_fraction", "heldout/accuracy"]
    numbers = pd.DataFrame({"arm": "a", "seed": 0, "node": "grpo", "metric": names, "source": "s0"})
    other = pd.DataFrame({"arm": "a", "seed": 1, "node": "grpo", "metric": ["last/loss"], "source": "s1"})
    kept = publish.worth_keeping(pd.concat([numbers, other], ignore_index=True))
    assert kept.metric.tolist() == [*names[1:], "last/loss"]  # seed 1 has no other number of it


def test_no_record_without_report(run, tmp_path):
    with pytest.raises(UserError, match=r"table.csv: missing; run `snakemake"):
        publish.publish(run, tmp_path / "published", "quickstart")


@pytest.mark.parametrize(
    ("change", "how"),
    [
        ({"dirty": True}, "from files that differ from 0123456789ab"),
        ({"commit": None, "dirty": None}, "outside git"),
    ],
)
def test_no_record_of_unknown_code(run, report, tmp_path, change, how):
    stage = next(node for node in run.all_nodes() if node.kind == "stage")
    path = run.root / stage.folder / "provenance.json"
    kept = path.read_text()
    path.write_text(json.dumps(json.loads(kept) | change))
    try:
        with pytest.raises(UserError, match=f"trained {how}; a record must name the code"):
            publish.publish(run, tmp_path / "published", "report")
    finally:
        path.write_text(kept)
    assert not (tmp_path / "published").exists()


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.parent.name)
def test_committed_verdicts_follow_from_their_differences(path):
    verdicts = claims.read(path)
    own = holm([p_claim(v.differences, v.direction, v.margin) if v.n > 1 else math.nan for v in verdicts])
    assert own == pytest.approx([v.p_holm for v in verdicts], rel=0.01, nan_ok=True)
    for v in verdicts:
        if v.verdict == "reproduced":
            assert v.p_holm < 0.05
            assert v.n >= 5
        if v.verdict == "contradicted":
            assert v.p_opposite_holm < 0.05
            assert v.n >= 5
