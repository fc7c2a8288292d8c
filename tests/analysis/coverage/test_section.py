"""The section on coverage: its tables and figures from final numbers alone, and its page."""

from dataclasses import replace

import pandas as pd
import pytest
from toy_run import ARMS, changed, draw_only

from analysis import report
from analysis.coverage import drawings
from analysis.coverage.build import SOLVED, build, curve
from analysis.coverage.view import crossovers_shown, solved_shown, view
from analysis.numbers.means import DASH
from analysis.numbers.recorded import recorded
from analysis.numbers.table import collect, final, measured
from analysis.publish import worth_keeping


@pytest.fixture(scope="module")
def covered(run):
    return changed(run, coverage="before")


@pytest.fixture(scope="module")
def known(covered):
    return final(collect(covered))


def test_a_recipe_without_coverage_has_no_such_section(run, table):
    assert build(run, final(table)) is None
    assert view(run, final(table), None).page is None


def test_every_arm_is_set_against_its_own_base(covered, known):
    compared = build(covered, known).by_task
    assert [place.arm for place in compared["heldout"]] == [*ARMS]
    assert {(place.base, place.checkpoint) for place in compared["heldout"]} == {("before", "after")}
    assert list(curve(known, "base-recipe/after", "heldout")) == sorted(
        int(metric.rpartition("@")[2])
        for metric in known.metric[known.metric.str.startswith("heldout/pass@")].unique()
    )


def test_the_tables_say_what_the_numbers_are(covered, known):
    found = build(covered, known)
    crossed, solved = found.crossovers, found.solved
    row = crossed[(crossed.task == "heldout") & (crossed.checkpoint == "base-recipe/after")].iloc[0]
    assert row["first"] == pytest.approx(measured(known, "base-recipe/after", "heldout/pass@1").value.mean())
    assert row.seeds == 3
    at = measured(known, "base-recipe/after", "heldout/crossover").value
    assert row["seeds that cross"] == at.notna().sum()
    shares = solved[solved.measure.isin(SOLVED)].groupby(["task", "checkpoint"]).value.sum()
    assert shares.tolist() == pytest.approx([1.0] * len(shares))
    assert "familiar" not in solved_shown(solved)  # nothing here has a perplexity
    words = drawings.in_words(solved)
    both = solved[(solved.checkpoint == "random/after") & (solved.measure == "both")].value.iloc[0]
    assert f"random/after: both {both:.0%}" in words


def test_a_crossover_is_shown_with_the_seeds_that_have_it():
    row = {"task": "t", "checkpoint": "a/after", "k": 1024, "base first": 0.1, "first": 0.3, "base last": 0.9}
    row |= {"last": 0.6, "seeds": 3, "crossed": 0.9, "ahead": 0.5, "behind": 0.4}
    some = row | {"seeds that cross": 2, "crossover": 30.0, "from": 20.0, "to": 40.0}
    none = row | {"seeds that cross": 0, "crossover": float("nan"), "from": float("nan"), "to": float("nan")}
    shown = crossovers_shown(pd.DataFrame([some, none]))
    assert shown["crosses at k"].tolist() == ["30 [20, 40]", DASH]
    assert shown["in seeds"].tolist() == ["2/3", "0/3"]
    assert "pass@1,024, base" in shown


def test_a_record_has_the_same_tables(covered, known):
    """Of numbers alone: a record keeps no samples."""
    kept = worth_keeping(known).drop(columns=["step", "source"])
    first, again = build(covered, known), build(covered, recorded(covered, kept))
    for name in ("crossovers", "solved"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(again, name))


@pytest.mark.slow
def test_the_page_shows_the_section(covered, tmp_path, monkeypatch):
    draw_only({"coverage", "solved-sets"}, monkeypatch)
    few = replace(covered, arms=("base-recipe", "random"), seeds=(0,))
    report.command(few, tmp_path / "report.html", "report")
    page = (tmp_path / "report.html").read_text()
    assert all(text in page for text in ('<section id="coverage">', 'href="#coverage"'))
    for name in ("coverage", "solved-sets"):
        assert f'<figure id="figure-{name}">' in page
        assert (tmp_path / "report/figures" / f"{name}.svg").stat().st_size > 5000
    assert "random/after: both" in page  # the figure in words
