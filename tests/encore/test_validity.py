"""A result holds for exactly the weights it was written with; changed code and libraries are told."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from encore import validity
from encore.runtime import digests, files, sentinel

KEPT = "kept; to make them again: the same command with --forcerun train"


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """Two stages, `a` and `b` trained from it."""
    for name, parents in (("a", {}), ("b", {"policy": "a"})):
        model = tmp_path / name / "final"
        model.mkdir(parents=True)
        (model / "model.safetensors").write_bytes(f"weights of {name}".encode())
        (model / "config.json").write_text("{}")
        upstream = {role: str(tmp_path / parent / "metrics.json") for role, parent in parents.items()}
        files.write_json(
            tmp_path / name / "metrics.json",
            {
                "model": str(model),
                "digest": sentinel.digest(model),
                "files": sentinel.sizes(model),
                "upstream": upstream,
                "inputs": {
                    role: sentinel.read_sentinel(Path(path))["digest"] for role, path in upstream.items()
                },
            },
        )
    return tmp_path


def test_untouched(chain: Path):
    assert validity.of_stage(chain / "a/metrics.json") is None
    assert validity.of_stage(chain / "b/metrics.json") is None


def test_missing_or_cut_short(chain: Path):
    assert validity.of_stage(chain / "c/metrics.json") == "it does not exist"
    path = chain / "a/metrics.json"
    path.write_text(path.read_text()[:40])
    assert validity.of_stage(path) == "it is not readable"
    path.write_text("[]")
    assert validity.of_stage(path) == "it is not readable"


@pytest.mark.parametrize("change", ["one byte", "another file", "a file less", "a name"])
def test_any_change_of_the_model(chain: Path, change: str):
    model = chain / "a/final"
    if change == "one byte":
        (model / "model.safetensors").write_bytes(b"weights of A")
    elif change == "another file":
        (model / "extra.json").write_text("")
    elif change == "a file less":
        (model / "config.json").unlink()
    else:
        (model / "config.json").rename(model / "Config.json")
    assert "has changed (digest mismatch)" in (validity.of_stage(chain / "a/metrics.json") or "")
    assert validity.of_stage(chain / "b/metrics.json") is None  # its own weights are as they were


def test_missing_model(chain: Path):
    shutil.rmtree(chain / "a/final")
    assert "is missing" in (validity.of_stage(chain / "a/metrics.json") or "")


def test_an_input_that_became_another(chain: Path):
    path = chain / "a/metrics.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "digest": "sha256:other"}))
    assert "its input policy" in (validity.of_stage(chain / "b/metrics.json") or "")
    path.unlink()
    assert validity.of_stage(chain / "b/metrics.json") is None


def test_digest_depends_on_content_alone(chain: Path):
    copy = chain / "elsewhere"
    shutil.copytree(chain / "a/final", copy)
    assert sentinel.digest(copy) == sentinel.digest(chain / "a/final")


def test_a_file_is_read_once_until_it_changes_in_any_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("file")
    path.write_text("a")
    known = validity.Memory.load()
    known.digest(path)
    assert not known.known  # so young that another write could have the same time
    monkeypatch.setattr(validity, "SETTLED", 0)
    time.sleep(0.01)
    first = known.digest(path)
    known.save()
    known = validity.Memory.load()
    assert list(known.known) == ["file"]
    monkeypatch.setattr(digests, "of_file", lambda path: "read again")
    assert known.digest(path) == first
    shutil.copy2(path, "copy")
    os.replace("copy", path)  # same content, size and time of change; another file
    assert known.digest(path) == "read again"
    path.unlink()
    validity.Memory.load().save()
    assert not validity.Memory.load().known


@pytest.mark.parametrize("text", ["", "[]", "{", '{"files": []}', '{"files": {"a": [1]}}', "\x00"])
def test_a_damaged_memory_of_digests_is_forgotten(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    validity.CHECKED.parent.mkdir()
    validity.CHECKED.write_text(text)
    assert validity.Memory.load().known == {}


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
    trainer, page = tmp_path / "encore/learning/rollouts.py", tmp_path / "analysis/report.py"
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
    since = f"(since commit {commit}: encore/learning/rollouts.py)"
    assert line == f"warning: 1 stage was made by other code {since}; {KEPT}"
    assert validity.differences([stage(tmp_path, "b", commit="0" * 40)], {}, tmp_path) == []  # not known here
