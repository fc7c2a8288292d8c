"""A sentinel stands for exactly the weights it was written with."""

import json
import shutil
from pathlib import Path

import pytest

from encore import validity
from encore.runtime import files, sentinel


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
                "inputs": {role: sentinel.read(Path(path))["digest"] for role, path in upstream.items()},
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


def test_write_leaves_the_old_file_when_it_fails(tmp_path: Path):
    path = tmp_path / "x.json"
    files.write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": 1}
