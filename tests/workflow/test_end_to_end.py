"""The quickstart for real: base model, two seeds, evaluations, verdicts, report; and the notebook on it."""

import json
import os
import re
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
PAGE = "results/r1_zero/cpu/quickstart.html"
NOTHING = "Nothing to be done"
PROGRESS = re.compile(
    r"^\[r1_zero/cpu/base-recipe/seed1 grpo\] step \d+/\d+ reward \S+ .* left$", re.MULTILINE
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where the quickstart has run: in the checkout, or else in a copy, with RL cut to 24 rollouts."""
    if (ROOT / PAGE).exists() and NOTHING in said(snakemake(ROOT, "--dry-run")):
        return ROOT
    folder = tmp_path_factory.mktemp("encore")
    shutil.copy(ROOT / "Snakefile", folder)
    for name in ("encore", "recipes", "evals", "analysis", "profiles"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    cuts = {
        "r1_zero/recipe.yaml": {
            "max_steps: 240": "max_steps: 96",
            "{0: 56, 120: 96}": "{0: 56, 48: 96}",
            "items: 128": "items: 32",
        },
        "presets/protocols.yaml": {"items: 256": "items: 64"},
    }
    for name, changes in cuts.items():
        path = folder / "recipes" / name
        text = path.read_text()
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)
    done = snakemake(folder)
    assert done.returncode == 0, said(done)
    assert done.stdout.rstrip().splitlines()[-1] == PAGE
    assert PROGRESS.search(said(done))
    return folder


PATH_OF_PYTHON = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("snakemake"), "--cores", *arguments],
        cwd=folder,
        env=os.environ | {"PATH": PATH_OF_PYTHON},
        capture_output=True,
        text=True,
        check=False,
        timeout=580,
    )


def said(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


@pytest.mark.slow
def test_quickstart_learns_and_reports(folder):
    scores = folder / "results/r1_zero/cpu/base-recipe"
    before, after = (
        [accuracy(scores / f"seed{seed}/evals/{name}.json") for seed in (1, 2)]
        for name in ("before", "after")
    )
    for first, last in zip(before, after, strict=True):  # each seed with a base model of its own
        assert last > first + 0.06  # chance moves it by 0.03

    sensitivity = (folder / "results/r1_zero/cpu/quickstart/sensitivity.csv").read_text().splitlines()
    assert len(sensitivity) == 1 + 2 * 2 * 3 * 2  # templates, wordings, temperatures, backends
    assert f"{sum(before) / 2:.3f}" in (folder / PAGE).read_text()

    again = snakemake(folder)
    assert again.returncode == 0
    assert NOTHING in said(again)
    *summary, page = again.stdout.rstrip().splitlines()[-6:]
    assert page == PAGE
    assert summary == (folder / "results/r1_zero/cpu/quickstart/summary.txt").read_text().splitlines()


@pytest.mark.slow
def test_the_notebook_runs_and_shows_what_it_was_committed_with(folder, monkeypatch):
    """Pictures and numbers of the quickstart itself may differ; what it says of the record may not."""
    records = "results/published/r1_zero-cpu"
    if not (folder / records).exists():
        shutil.copytree(ROOT / records, folder / records)
    monkeypatch.setenv("PATH", PATH_OF_PYTHON)
    committed = nbformat.read(ROOT / "docs/quickstart.ipynb", as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    done = NotebookClient(deepcopy(committed), timeout=300, resources=resources).execute()
    assert [*map(shown, done.cells)] == [*map(shown, committed.cells)]
    of_record = [n for n, cell in enumerate(done.cells) if "verdicts = judge(numbers" in cell.source]
    assert len(of_record) == 1
    found, kept = (
        cells[of_record[0]].outputs[0].data["text/plain"] for cells in (done.cells, committed.cells)
    )
    assert found == kept


def shown(cell: nbformat.NotebookNode) -> list[str]:
    """The kinds of what a cell shows, but for what its commands print."""
    kinds = [output.output_type for output in cell.get("outputs", [])]
    return [kind for kind in kinds if kind != "stream"]


def accuracy(path: Path) -> float:
    return json.loads(path.read_text())["tasks"]["heldout"]["metrics"]["accuracy"]["value"]
