"""The record of a report: everything to judge it by, and nothing of a run whose code is unknown."""

import json
from pathlib import Path

import pandas as pd
import pins
import pytest
from papers import GRAPH, RECIPES

from analysis import publish
from analysis.numbers import table
from analysis.numbers.recorded import of_earlier_world
from analysis.verdicts import claims, records
from analysis.verdicts.decision import judge_run
from encore.errors import UserError
from encore.recipe.looks import LOOKS

README = (Path(__file__).parents[2] / "results/published/README.md").read_text(encoding="utf-8")
RECORDS = sorted(Path(__file__).parents[2].glob("results/published/*/claims.csv"))


@pytest.fixture
def report(run):
    """The page of the run, which a record is taken after."""
    page = run.root / "results/toy_zero/cpu/report.html"
    page.write_text("")
    return page


@pytest.mark.slow
def test_record_has_the_final_numbers_and_every_run(run, report, tmp_path):
    out = tmp_path / "published"
    publish.publish(run, out, "report")
    numbers, runs = pd.read_csv(out / "numbers.csv.xz"), pd.read_csv(out / "runs.csv.xz")
    final = table.final(table.collect(run))
    assert len(numbers) == len(final.drop_duplicates(["source", "metric"])) < len(final)
    assert set(numbers.seed) == {0, 1, 2}
    assert not {"recipe", "scale"} & {*numbers}  # the folder is called by them
    before = numbers[(numbers.node == "before") & (numbers.metric == "heldout/accuracy")]
    owners = [[arm, seed] for arm in ("base-recipe", "no-cot-base") for seed in (0, 1, 2)]
    assert sorted(before[["arm", "seed"]].values.tolist()) == owners
    assert len(runs) == sum(node.kind == "stage" for node in run.all_nodes())
    assert json.loads(runs.hardware[0])
    kept, judged = claims.read_verdicts(out / "claims.csv"), judge_run(run, final)[-1]
    assert [verdict.word for verdict in kept] == [verdict.word for verdict in judged]


@pytest.mark.slow
def test_a_record_among_the_others_gets_its_row(run, report):
    folder = run.root / publish.RECORDS
    publish.publish(run, folder / "toy_zero-cpu", "report")
    text = (folder / "README.md").read_text()
    judged_at = records.judged_at(claims.read_verdicts(folder / "toy_zero-cpu/claims.csv"))
    assert f"{judged_at} | [toy_zero-cpu](toy_zero-cpu) |" in text


@pytest.mark.slow
def test_a_table_that_the_report_has_not_leaves_the_record(run, report, tmp_path):
    for name in ("labels.csv", "numbers.csv.xz"):
        (tmp_path / name).write_text("from an earlier report")
    publish.publish(run, tmp_path, "report")
    assert not (tmp_path / "labels.csv").exists()
    assert not (tmp_path.parent / "README.md").exists()  # the index is that of results/published alone


def test_a_last_step_is_not_kept_beside_its_last_fifth():
    names = ["last/loss", "last_fifth/loss", "last/length/correct", "mean/clip_fraction", "heldout/accuracy"]
    numbers = pd.DataFrame({"arm": "a", "seed": 0, "node": "grpo", "metric": names, "source": "s0"})
    other = pd.DataFrame({"arm": "a", "seed": 1, "node": "grpo", "metric": ["last/loss"], "source": "s1"})
    kept = publish.worth_keeping(pd.concat([numbers, other], ignore_index=True))
    assert kept.metric.tolist() == [*names[1:], "last/loss"]  # seed 1 has no other number of it


def test_a_last_step_that_a_claim_reads_is_kept():
    """It was not: a claim of `last/regret` was open in the report, and "not tested" in the record."""
    numbers = pd.DataFrame(
        {"arm": "a", "seed": 0, "node": "grpo", "metric": ["last/regret", "last_fifth/regret"], "source": "s"}
    )
    assert publish.worth_keeping(numbers, ["last/regret"]).metric.tolist() == numbers.metric.tolist()


def test_what_is_read_off_frontiers_is_no_part_of_a_record():
    numbers = pd.DataFrame({"arm": ["a", "frontier"], "seed": 0, "node": "x", "metric": "m", "source": "s"})
    numbers.loc[1, "source"] = "s t"
    assert publish.worth_keeping(numbers).arm.tolist() == ["a"]


def test_no_record_without_report(run, tmp_path):
    with pytest.raises(UserError, match=r"quickstart.html: missing; run `snakemake"):
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
def test_no_committed_verdict_is_decided_before_its_look(path):
    judged = claims.read_verdicts(path)
    dials = RECIPES[path.parent.name.rpartition("-")[0]].dial_seeds
    for v in judged:
        assert v.word in claims.VERDICTS
        assert not v.look or (v.asked >= v.look in LOOKS)
        assert not set(v.seeds) & dials
        if v.n and v.decided:
            assert v.look
            assert v.n >= 5
            assert v.low <= v.estimate <= v.high
        if v.word == "shown":
            assert claims.satisfies(v.low, v.direction, v.margin)
            assert claims.satisfies(v.high, v.direction, v.margin)
        if v.word == "reversed" and v.direction != "equal":
            assert v.high < 0 if v.direction == "higher" else v.low > 0


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.parent.name)
def test_a_record_has_a_row_for_every_claim_of_its_recipe(path):
    """Claims at other scales have one too. If not: python -m analysis.publish --rejudge"""
    if not of_earlier_world(path.parent, GRAPH):
        document = RECIPES[path.parent.name.rpartition("-")[0]].document
        assert {v.id for v in claims.read_verdicts(path)} == {*document.claims}


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.parent.name)
def test_committed_verdicts_follow_from_the_numbers_and_the_recipe(path, tmp_path):
    """If not: python -m analysis.publish --rejudge"""
    if of_earlier_world(path.parent, GRAPH):
        (row,) = [line for line in README.splitlines() if f"| [{path.parent.name}](" in line]
        assert f"| {records.EARLIER} |" in row
        return
    for table_ in publish.judged_anew(path.parent, GRAPH):
        table_.numbers.to_csv(tmp_path / "judged.csv", index=False)
        committed = path.with_name(f"{table_.name}.csv")
        anew, before = pd.read_csv(tmp_path / "judged.csv"), pd.read_csv(committed)
        try:  # the last digits of a p value are the processor's
            pd.testing.assert_frame_equal(anew, before, rtol=1e-9)
        except AssertionError as error:
            pytest.fail(f"{committed}: {error}; {pins.because('verdicts of the records')}")


def test_a_record_judged_anew_has_the_verdicts_of_its_report(run, report, tmp_path):
    """From the numbers, which have what arms share once, and six digits, as from the table that has all."""
    out = tmp_path / "published/toy_zero-cpu"
    publish.publish(run, out, "report")
    kept = pd.read_csv(out / "claims.csv")
    anew = {table_.name: table_.numbers for table_ in publish.judged_anew(out, run.graph)}
    verdicts = judge_run(run, table.final(table.collect(run)))[-1]
    expected = claims.frame(verdicts)
    digits = "differences"  # written with six digits, of numbers that have six
    pd.testing.assert_frame_equal(
        anew["claims"].drop(columns=digits), expected.drop(columns=digits), rtol=1e-3
    )
    assert any(expected.n > 0)
    anew["claims"].to_csv(out / "anew.csv", index=False)
    pd.testing.assert_frame_equal(kept, pd.read_csv(out / "anew.csv"))  # what --rejudge writes
    assert set(anew) == {"claims", "looks", "gates", "collapses", "dials"}
