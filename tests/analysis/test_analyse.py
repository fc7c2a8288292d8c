import hashlib
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd
import pytest
from toy_run import draw_only

from analysis import analyse
from analysis.coverage import section as coverage
from analysis.numbers.run import Run
from analysis.preferences import section as preferences
from analysis.sections import SECTIONS
from analysis.sensitivity import section as sensitivity
from analysis.stage_ladder import section as stage_ladder

FIGURES = 14  # of one arm without a ladder: what compares arms has nothing to show


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.slow
def test_a_second_run_gives_the_same_bytes(quick, quick_out, tmp_path, monkeypatch):
    few = {"forest", "ratios", "entropy-accuracy", "accuracy"}  # one of each kind
    draw_only(few, monkeypatch)
    analyse.analyse(quick, tmp_path)
    first, second = digests(quick_out), digests(tmp_path)
    changed = {name for name in second if second[name] != first[name]}
    assert changed == {"figures/index.json"}
    assert len(second) == len(first) - 3 * (FIGURES - len(few))


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
        "uncertainty",
    }
    every = {name for section in SECTIONS for name in section.TABLES}
    asked_for = {
        *coverage.TABLES,
        *preferences.TABLES,
        *stage_ladder.TABLES,
        *sensitivity.TABLES,
        "best_of_n",
        "templates",
    }
    assert always == every - asked_for
    absent = {*stage_ladder.TABLES, *sensitivity.TABLES, "best_of_n", "templates"}
    assert not names & {f"{name}.csv" for name in absent}
    for table in always:
        assert {f"{table}.csv", f"{table}.md", f"{table}.tex", f"{table}.html"} <= names
    wanted = {"forest", "accuracy", "length", "reward", "entropy", "kl", "clip", "zero-variance", "pass-at-k"}
    wanted |= {"accuracy-by-difficulty", "length-by-difficulty"}
    wanted |= {"entropy-accuracy", "accuracy-by-effort", "ratios"}
    drawn = {figure["name"] for figure in json.loads((quick_out / "figures/index.json").read_text())}
    assert drawn == wanted
    assert len(drawn) == FIGURES
    assert {f"figures/{name}.{kind}" for name in drawn for kind in ("svg", "png", "pdf")} <= names


def test_summary_is_five_lines_with_the_key_numbers(quick_out):
    lines = (quick_out / "summary.txt").read_text().splitlines()
    assert len(lines) == 5
    assert lines[0].endswith("cpu scale, 2 seeds, 1 arm")
    assert "0.190 [0.179, 0.200] \N{RIGHTWARDS ARROW} 0.7" in lines[1]
    assert lines[2].startswith("Response length in tokens: 21.0")
    assert "2 not tested (a decision takes 8 seeds)" in lines[3]
    assert lines[4].startswith("rl-lifts-accuracy supported so far (d = 0.6")


def test_the_quickstart_says_why_a_claim_is_not_tested(quick_out):
    verdicts = pd.read_csv(quick_out / "claims.csv").set_index("id")
    assert verdicts.verdict["random-reward-does-not-help"] == "not tested"
    assert verdicts.note["random-reward-does-not-help"] == "arm random was not run"


def test_svg_is_well_formed_and_keeps_its_labels(quick_out):
    for path in (quick_out / "figures").glob("*.svg"):
        ET.parse(path)
    text = (quick_out / "figures/forest.svg").read_text()
    assert ">rl-lifts-accuracy<" in text


def test_a_run_without_artefacts_still_reports(run, tmp_path):
    empty = Run(run.graph, run.name, run.scale, run.arms, run.seeds, tmp_path)
    lines = analyse.analyse(empty, tmp_path / "out")
    assert lines[3] == "Published claims: 5 not tested (a decision takes 8 seeds)"
    assert lines[4] == "No claim could be tested."
    assert json.loads((tmp_path / "out/figures/index.json").read_text()) == []
