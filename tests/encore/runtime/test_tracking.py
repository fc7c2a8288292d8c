"""A tracker that is not there is told in one line before anything is loaded; none is the default."""

import os
import subprocess
import sys

import pytest

from encore.errors import UserError
from encore.runtime import tracking

COMMAND = [*("-m", "encore.stages", "grpo", "--config", "{}", "--seed", "0", "--name", "r/cpu/a/seed0/grpo")]
COMMAND += ["--checkpoints", "checkpoints", "--out", "metrics.json", "--track", "trackio"]


@pytest.mark.slow
def test_one_that_is_not_installed(tmp_path):
    """wandb leaves a folder of its name, which Python would take for a package."""
    (tmp_path / "trackio").mkdir()
    (tmp_path / "torch.py").write_text("raise SystemExit('torch is loaded')")
    plain = [path for path in sys.path if path]
    if any(os.path.exists(f"{path}/trackio/__init__.py") for path in plain):
        pytest.skip("trackio is installed here")
    done = subprocess.run(
        [sys.executable, *COMMAND],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *plain])},
        capture_output=True,
        text=True,
    )
    advice = "trackio is not installed here; `pip install trackio`, or leave track out"
    assert (done.returncode, done.stderr) == (2, f"error: --config track=trackio: {advice}\n")


def test_one_that_does_not_exist():
    with pytest.raises(UserError, match=r'^--config track: unknown tracker "wanbd"; did you mean "wandb"\?$'):
        tracking.require("wanbd")


def test_what_a_stage_tells_its_trainers(monkeypatch):
    for variable in (tracking.CHOSEN, tracking.RUN):
        monkeypatch.setenv(variable, "")  # and so restored
    tracking.choose("wandb", "r/cpu/a/seed0/grpo")
    assert tracking.arguments() == {"report_to": "wandb", "project": "r-cpu", "run_name": "a/seed0/grpo"}
    tracking.choose(tracking.NONE, "r/cpu/a/seed0/grpo")
    assert tracking.arguments() == {"report_to": "none"}
