"""The static site of the records: made from them alone, and the same bytes each time."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pins
import pytest
from judged_claims import judge
from packaging.requirements import Requirement
from papers import GRAPH
from toy_run import draw_only

from analysis import publish
from analysis.gallery import __main__ as gallery
from analysis.gallery import history, index, pages, scoreboard
from analysis.numbers import recorded
from analysis.numbers.run import SHOWN
from analysis.numbers.table import curves, measured
from analysis.provenance.completions import Rollout
from encore.recipe.graph import Graph
from encore.recipe.layers import Layers
from encore.recipe.recipe import Recipe

RECORDS = Path(__file__).parents[3] / "results/published"
DRAWN = {"forest", "accuracy", "ladder"}


@pytest.fixture(scope="module")
def record(run, tmp_path_factory) -> Path:
    """The record of the toy run."""
    out = tmp_path_factory.mktemp("published") / "toy_zero-cpu"
    (run.root / "results/toy_zero/cpu/report.html").write_text("")
    publish.publish(run, out, "report")
    return out


@pytest.fixture
def site(run, monkeypatch):
    """Where the toy recipes lie, and few figures: pages are made there."""
    monkeypatch.chdir(run.root)
    draw_only(DRAWN, monkeypatch)


@pytest.mark.slow
def test_a_page_is_made_from_the_record_alone_and_is_the_same_each_time(run, record, site, tmp_path):
    made = [pages.page(record, run.graph, tmp_path / name) for name in ("one", "two")]
    assert made[0] == made[1]
    text = made[0]
    assert (tmp_path / "one/accuracy.svg").exists()  # of curves that the record keeps
    for wanted in (
        "Made from the record toy_zero-cpu",
        "most groups teach nothing",
        "0123456789abcdef0123456789abcdef01234567",
        "elapsed while any of",
        'href="../index.html"',
    ):
        assert wanted in text, wanted
    assert "it has not kept" not in text
    assert "No samples on disk." not in text


@pytest.mark.slow
def test_the_page_of_an_older_record_says_what_it_lacks(run, record, site, tmp_path):
    old = tmp_path / "toy_zero-cpu"
    shutil.copytree(record, old)
    for name in pages.LACKS:
        (old / name).unlink()
    text = pages.page(old, run.graph, tmp_path / "scratch")
    assert f"it has not kept {', '.join(pages.LACKS.values())}." in text
    assert "No learning curves are kept." in text


def test_curves_of_a_record_are_thin_and_those_of_the_run(run, table, record):
    again, numbers = recorded.with_curves(record, run.graph)
    assert again.seeds == run.seeds
    for arm in ("base-recipe", "longer-cap"):
        mine, theirs = (
            curves(one[one.arm == arm], ["accuracy"]).groupby("seed").value.agg(["mean", "size"])
            for one in (numbers, table)
        )
        assert (mine["size"] <= recorded.POINTS).all()
        assert mine["mean"].tolist() == pytest.approx(theirs["mean"].tolist(), abs=0.01)


def test_what_a_dial_seed_shares_with_the_judged_ones_is_theirs(run, record, tmp_path):
    """The base model is measured once, under the first seed, on which a dial was chosen."""
    dials = [{"what": "rate", "seeds": [0], "outcome": "1e-4"}]
    chosen = Recipe(run.name, Layers(run.recipe.layers.content | {"dials": dials}))
    graph = Graph({**run.graph.recipes, run.name: chosen})
    judged, numbers = recorded.with_curves(record, graph)
    assert judged.seeds == (1, 2)
    assert set(numbers.seed) == {1, 2}
    assert len(measured(numbers, "base-recipe/before", "heldout/accuracy")) == 2


def test_a_record_keeps_a_hundred_samples_of_all_arms_and_what_was_installed(record):
    text = (record / recorded.PACKAGES).read_text()
    assert "torch==" in text
    assert text.startswith("# torch was 2.13.0 in a run\n") or "# torch" not in text
    rows = [Rollout(arm, step, "", "", "", 1.0, {}, 9, True) for arm in "abc" for step in range(90)]
    chosen = publish.few(rows)
    assert len(chosen) == 99
    for arm in "abc":
        steps = [row.step for row in chosen if row.arm == arm]
        assert (steps[0], steps[-1], len(steps)) == (0, 89, 33)
    assert (record / SHOWN).exists()


def test_an_upgrade_since_the_run_is_named():
    runs = pd.DataFrame({"versions": [{"torch": "0.1", "python": "3.11"}]})
    assert publish.packages(runs).splitlines()[0] == "# torch was 0.1 in a run"


def test_the_packages_of_a_record_can_be_installed_again(monkeypatch):
    """Encore is of no registry, and a build of torch for the CPU is of an index of its own."""
    torch = SimpleNamespace(metadata={"Name": "torch"}, version="2.13.0+cpu")
    ours = SimpleNamespace(metadata={"Name": "encore-rl"}, version="0.1.0")
    monkeypatch.setattr(publish.metadata, "distributions", lambda: [torch, ours])
    lines = publish.packages(pd.DataFrame({"versions": [{}]})).splitlines()
    assert lines[0] == "--extra-index-url https://download.pytorch.org/whl/cpu"
    assert [Requirement(line).name for line in lines[1:] if not line.startswith("#")] == ["torch"]


def test_a_change_of_verdict_is_remembered_and_nothing_else():
    claims = pd.DataFrame({"id": ["a", "b"], "n": [8, 0], "word": ["open", "not tested"]})
    empty = history.read_history(Path("nowhere"))
    first = history.extended(empty, "x-cpu", claims, "2026-01-01", "c" * 40)
    assert first.claim.tolist() == ["a"]
    assert history.extended(first, "x-cpu", claims, "2026-01-02", "d" * 40) is first
    later = history.extended(first, "x-cpu", claims.assign(n=16, word="shown"), "2026-01-03", "e" * 40)
    (row,) = history.changes(later).to_dict("records")
    assert row["verdicts"].split(" \N{RIGHTWARDS ARROW} ") == [
        "open (8 seeds, 2026-01-01, ccccccc)",
        "shown (16 seeds, 2026-01-03, eeeeeee)",
    ]


@pytest.mark.parametrize(
    ("date", "seeds", "word", "told"),
    [
        ("2026-01-02", 8, "reproduced", ["gain"]),  # the rule has changed: it is open by now
        ("2026-01-02", 8, "inconclusive", []),  # another word for the same
        ("2026-01-02", 8, "not tested", []),
        ("2026-01-02", 5, "reproduced", []),  # of fewer seeds
        ("2025-12-31", 8, "reproduced", []),  # of other runs
    ],
)
def test_a_verdict_stands_beside_the_one_that_the_same_runs_had_before(date, seeds, word, told):
    known = pd.DataFrame([["x-cpu", "gain", date, "c" * 40, seeds, word]], columns=history.COLUMNS)
    verdict = judge([0.3, 0.7] * 4, [0.5] * 8)
    assert (verdict.word, verdict.n) == ("open", 8)
    before = history.by_an_earlier_rule(known, "x-cpu", [verdict], "2026-01-01")
    assert list(before) == told
    assert all(word in text for text in before.values())


def test_a_paper_is_named_by_its_number():
    assert scoreboard.label("https://arxiv.org/abs/2503.14476") == "arXiv 2503.14476"
    assert scoreboard.label("https://github.com/a/b/blob/x/y.py") == "github.com/a/b"


def test_a_claim_of_no_difference_keeps_to_its_cell():
    text = scoreboard.markdown(scoreboard.lines(RECORDS, GRAPH))
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    assert any(r"\|d\| <" in row for row in rows)
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8}


def test_reports_of_a_scale_have_a_first_page(run, record, monkeypatch, tmp_path):
    folder = tmp_path / "toy_zero/cpu/report"
    folder.mkdir(parents=True)
    shutil.copyfile(record / "claims.csv", folder / "claims.csv")
    folder.with_suffix(".html").write_text("")
    text = index.render(index.of_scale(tmp_path, "cpu", run.graph))
    assert '<a href="../toy_zero/cpu/report.html">toy_zero</a>' in text
    assert text.count('href="../toy_zero/cpu/report.html#claim-') == len(run.recipe.claims("cpu"))
    assert "registered" not in text.partition("<main>")[2].partition("<script>")[0]  # the report tells
    assert "No report here yet." in index.render(index.of_scale(tmp_path, "gpu", run.graph))


def test_an_unknown_record_is_one_line(monkeypatch, capsys):
    monkeypatch.chdir(RECORDS.parents[1])
    monkeypatch.setattr(gallery, "load_all", lambda: GRAPH.recipes)
    assert gallery.main(["--records", "r1-cpuu"]) == 2
    assert 'no record "r1-cpuu" in results/published; did you mean "r1-cpu"?' in capsys.readouterr().err


def test_a_committed_page_is_what_its_record_says(monkeypatch, tmp_path):
    """If not: snakemake --cores gallery"""
    monkeypatch.chdir(RECORDS.parents[1])
    made = pages.page(RECORDS / "learning_rates-cpu", GRAPH, tmp_path)
    committed = (RECORDS / "learning_rates-cpu/index.html").read_text(encoding="utf-8")
    pins.hold("pages of the records", made, committed)


def test_the_site_is_small_enough_for_git():
    files = [path for path in RECORDS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 42e6  # git packs it to a sixth
    assert {path.parent.name for path in RECORDS.glob("*/claims.csv")} == {
        path.parent.name for path in RECORDS.glob("*/index.html")
    }
