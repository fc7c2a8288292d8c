import hashlib
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd
import pytest
from toy_run import draw_only

from analysis import report
from analysis.numbers.run import Run
from analysis.numbers.table import collect
from analysis.results import build, views

FIGURES = 16  # of one arm without a ladder: what compares arms has nothing to show


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.slow
def test_a_second_run_gives_the_same_bytes(quick, quick_out, tmp_path, monkeypatch):
    few = {"forest", "ratios", "entropy-accuracy", "accuracy"}  # one of each kind
    draw_only(few, monkeypatch)
    report.command(quick, tmp_path / "quickstart.html", "quickstart")
    first, second = digests(quick_out), digests(tmp_path / "quickstart")
    assert second.items() <= first.items()
    assert len(second) == len(first) - 3 * (FIGURES - len(few))


@pytest.mark.slow
def test_everything_promised_is_written(quick_out):
    names = set(digests(quick_out))
    always = {
        "arms",
        "claims",
        "looks",
        "gates",
        "collapses",
        "dials",
        "published",
        "health",
        "cost",
        "objectives",
        "registration",
        "uncertainty",
    }
    assert {Path(name).stem for name in names if name.endswith(".csv")} == {"table", *always}
    for table in always:
        assert {f"{table}.csv", f"{table}.md", f"{table}.tex", f"{table}.html"} <= names
    wanted = {"forest", "accuracy", "length", "reward", "entropy", "kl", "clip", "zero-variance", "pass-at-k"}
    wanted |= {"accuracy-by-difficulty", "length-by-difficulty"}
    wanted |= {"entropy-accuracy", "accuracy-by-effort", "saturation", "ratios", "before-after"}
    drawn = {path.stem for path in (quick_out / "figures").glob("*.svg")}
    assert drawn == wanted
    assert len(drawn) == FIGURES
    assert {f"figures/{name}.{kind}" for name in drawn for kind in ("svg", "png", "pdf")} <= names


@pytest.mark.slow
def test_summary_is_five_lines_with_the_key_numbers(quick_out):
    lines = (quick_out / "summary.txt").read_text().splitlines()
    assert len(lines) == 5
    assert lines[0].endswith("cpu scale, 2 seeds, 1 arm")
    assert "0.190 [0.190, 0.190] \N{RIGHTWARDS ARROW} 0.7" in lines[1]
    assert lines[2].startswith("Response length in tokens: 21.0")
    assert "1 not tested (a decision takes 8 seeds)" in lines[3]
    assert lines[4].startswith("rl-lifts-accuracy open (d = 0.6")


@pytest.mark.slow
def test_the_quickstart_says_why_a_claim_is_not_tested(quick_out):
    verdicts = pd.read_csv(quick_out / "claims.csv").set_index("id")
    assert verdicts.word["random-reward-does-not-help"] == "not tested"
    assert verdicts.note["random-reward-does-not-help"] == "arm random was not run"


@pytest.mark.slow
def test_svg_is_well_formed_and_keeps_its_labels(quick_out):
    for path in (quick_out / "figures").glob("*.svg"):
        ET.parse(path)
    text = (quick_out / "figures/forest.svg").read_text()
    assert ">rl-lifts-accuracy<" in text


@pytest.mark.slow
def test_a_run_without_artefacts_still_reports(run, tmp_path):
    empty = Run(run.graph, run.name, run.scale, run.arms, run.seeds, tmp_path)
    lines = report.write(build(empty, collect(empty)), tmp_path / "out.html")
    assert lines[3] == "Claims: 3 not tested; of other papers: 2 not tested (a decision takes 8 seeds)"
    assert lines[4] == "No claim could be tested."
    assert not list((tmp_path / "out/figures").iterdir())


@pytest.mark.slow
def test_a_figure_has_a_name_of_its_own(rlhf, rlhf_table):
    shown = views(build(rlhf, rlhf_table))
    names = [plan.name for view in shown.values() for plan in view.figures]
    assert len(names) == len(set(names))  # it is that of its file
