"""Code and libraries that have changed under a finished result are told, and the result is kept."""

import json
import subprocess
from pathlib import Path

import pytest

from encore import validity

KEPT = "kept; to make them again: the same command with --forcerun train"


def stage(folder: Path, name: str, **record) -> Path:
    """The metrics.json of a finished stage with this provenance."""
    path = folder / name / "metrics.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.with_name("provenance.json").write_text(json.dumps(record))
    return path


@pytest.mark.fault(
    "another library version than the record's",
    "finished stages",
    "a warning with both versions; kept, with the choice to make them again",
)
def test_another_version_of_a_library_is_told_once(tmp_path):
    old = [stage(tmp_path, name, versions={"torch": "2.12.0", "trl": "1.0", "gone": "1"}) for name in "ab"]
    new = stage(tmp_path, "c", versions={"torch": "2.13.0", "trl": "1.0"})
    missing = tmp_path / "d/metrics.json"
    lines = validity.differences([*old, new, missing], {"torch": "2.13.0", "trl": "1.0"}, tmp_path)
    assert lines == [f"warning: 2 stages were made with torch 2.12.0, and 2.13.0 is installed; {KEPT}"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"versions": []}', '{"versions": {"torch": 3}, "commit": 3}']
)
def test_a_provenance_that_is_none_is_no_error(tmp_path, text):
    path = stage(tmp_path, "a")
    path.with_name("provenance.json").write_text(text)
    assert len(validity.differences([path], {"torch": "2"}, tmp_path)) == ("torch" in text)


@pytest.mark.fault(
    "the code changed under a finished result",
    "finished stages",
    "a warning that names the files; kept, with the choice to make them again",
)
def test_changed_code_is_told_by_its_files(tmp_path):
    def git(*words: str) -> str:
        own = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(own, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    trainer, page = tmp_path / "encore/learning/grpo.py", tmp_path / "analysis/report.py"
    for file in (trainer, page):
        file.parent.mkdir(parents=True)
        file.write_text("1")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    path = stage(tmp_path, "a", commit=git("rev-parse", "HEAD"))
    page.write_text("2")  # not what trains
    assert validity.differences([path], {}, tmp_path) == []
    trainer.write_text("2")  # in the tree, not committed
    (line,) = validity.differences([path], {}, tmp_path)
    commit = git("rev-parse", "HEAD")[:8]
    since = f"(since commit {commit}: encore/learning/grpo.py)"
    assert line == f"warning: 1 stage was made by other code {since}; {KEPT}"
    assert validity.differences([stage(tmp_path, "b", commit="0" * 40)], {}, tmp_path) == []  # not known here


@pytest.mark.slow
def test_it_is_said_at_the_start_and_the_choice_is_one_that_works(project):
    assert len(project.run()) == 5
    for path in (project.folder / "results").rglob("provenance.json"):
        path.write_text(json.dumps({"versions": {"python": "2.7"}}))
    for path in (project.folder / "results").rglob("*.sha256"):  # these results are the user's own now
        path.unlink()
    says = "warning: 3 stages were made with python 2.7"
    assert says in project.snakemake("--dry-run").stderr
    assert project.run() == []
    assert len(project.run("--forcerun", "train")) == 5
    assert says not in project.snakemake("--dry-run").stderr
