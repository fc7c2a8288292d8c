"""The smoke test for real, as a newcomer runs it before renting a GPU: it learns, and its page says so."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = "results/smoke/cpu/report.html"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("encore")
    shutil.copy(ROOT / "Snakefile", folder)
    for name in ("encore", "recipes", "evals", "analysis", "profiles"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    smoke(folder)
    return folder


def smoke(folder: Path) -> str:
    """Run `snakemake smoke`, and return the head of its page."""
    done = subprocess.run(
        [Path(sys.executable).with_name("snakemake"), "--cores", "1", "smoke"],
        cwd=folder,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / PAGE).read_text(encoding="utf-8").partition("</header>")[0]


@pytest.mark.slow
def test_it_passes_and_says_what_its_weights_do(folder):
    head = (folder / PAGE).read_text(encoding="utf-8").partition("</header>")[0]
    assert "<b>Pass.</b>" in head
    scores = [
        json.loads((folder / f"results/smoke/cpu/base-recipe/seed0/evals/{name}.json").read_text())
        for name in ("before", "after")
    ]
    before, after = (score["tasks"]["heldout"]["metrics"]["accuracy"]["value"] for score in scores)
    summary = (folder / "results/smoke/cpu/report/summary.txt").read_text()
    assert f"these weights: higher by {after - before:.3f} [" in summary
    assert "it-learns open" in summary
    assert summary.splitlines()[-1].startswith("Pass: Accuracy of base-recipe/grpo stays within ")


@pytest.mark.slow
def test_a_curve_that_it_does_not_reach_makes_the_same_run_fail(folder):
    """Only the page is made anew."""
    recipe = folder / "recipes/smoke/recipe.yaml"
    raised, count = re.subn(r"curve: \{.*\}", "curve: {52: 0.97, 100: 0.99}", recipe.read_text())
    assert count == 1
    recipe.write_text(raised)
    head = smoke(folder)
    assert "<b>Look here.</b> Accuracy of base-recipe/grpo lies" in head
    assert "below the expected curve" in head
