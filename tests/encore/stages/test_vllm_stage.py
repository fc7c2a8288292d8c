"""A `grpo` stage trains through a server of its own, which never outlives it.

TRL's client and trainer are the real ones; vLLM, and NCCL beneath it, have a stand-in (tests/helpers).
"""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ahead_witness
import pytest
import stage_runs
from safetensors.torch import load_file

from encore.runtime import sentinel

STAND_IN = Path(__file__).parents[2] / "helpers" / "vllm_stand_in"
ROOT = Path(__file__).parents[3]
# TRL sends weights from a GPU alone: here it takes the CPU for one
STAGE = """
import os, sys
from types import SimpleNamespace
import stage_runs
from trl.generation import vllm_client
if "WATCHED" in os.environ:
    import ahead_witness
    ahead_witness.watch()
if "DIES_AT_STEP" in os.environ:
    stage_runs.at_training_step(int(os.environ["DIES_AT_STEP"]))
vllm_client.torch = SimpleNamespace(device=lambda _: SimpleNamespace(type="cuda", index=None))
from encore.stages.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
SERVER = {"use_vllm": True, "vllm_mode": "server", "vllm_importance_sampling_correction": True}


def arguments(checkpoint: Path, **keys: Any) -> list[str]:
    args = stage_runs.GRPO["args"] | SERVER | {"max_steps": 8, "save_steps": 2, "logging_steps": 1}
    args |= {"beta": 0.0, "sync_ref_model": False, "steps_per_generation": 2, "learning_rate": 1e-2}
    model = {"path": sentinel.read_sentinel(checkpoint)["model"]}
    config = stage_runs.GRPO | {"args": args, "model": model} | keys
    return ["grpo", *stage_runs.command("grpo", config)]


def start(folder: Path, command: list[str], **more: str) -> subprocess.Popen[str]:
    path = os.pathsep.join(map(str, (STAND_IN, STAND_IN.parent, ROOT)))
    paths = {"PYTHONPATH": path, "http_proxy": "http://127.0.0.1:9"}  # at which nothing answers
    return subprocess.Popen(
        [sys.executable, "-c", STAGE, *command],
        cwd=folder,
        env=os.environ | paths | more,
        stdout=(folder / "out.txt").open("a"),
        stderr=(folder / "err.txt").open("a"),
        text=True,
    )


def log(folder: Path) -> str:
    path = folder / "results/grpo/vllm.log"
    return path.read_text() if path.exists() else ""


def servers(folder: Path) -> list[int]:
    """The processes of the servers that were started, by their log."""
    return [int(pid) for pid in re.findall(r"^process (\d+) serves", log(folder), re.MULTILINE)]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_it_trains_through_its_own_server(checkpoint, tmp_path):
    command = arguments(checkpoint)

    assert start(tmp_path, command, DIES_AT_STEP="6").wait(900) == -signal.SIGKILL
    assert len(servers(tmp_path)) == 1
    until(lambda: not any(map(alive, servers(tmp_path))))

    failed = start(tmp_path, command, STAND_IN_DIES_AT="1")
    assert failed.wait(900) == 2
    line = stage_runs.error_line(tmp_path)
    assert "RuntimeError: CUDA error: an illegal memory access was encountered; see results/grpo/v" in line

    assert start(tmp_path, command).wait(900) == 0, (tmp_path / "err.txt").read_text()
    assert len(servers(tmp_path)) == 3
    assert not any(map(alive, servers(tmp_path)))
    said = (tmp_path / "out.txt").read_text()
    assert re.search(r"the vLLM server answers after \d+:\d\d\n.*resuming from step 4 of 8", said)

    result = json.loads((tmp_path / "results/grpo/metrics.json").read_text())
    with (tmp_path / "results/grpo/curve.csv").open() as file:
        curve = list(csv.DictReader(file))
    assert {int(row["step"]) for row in curve} == {*range(1, 9)}
    gaps = [float(row["value"]) for row in curve if row["metric"] == "sampling/sampling_logp_difference/max"]
    assert len(gaps) >= 4
    assert max(gaps) < 1e-4  # so it was always the newest weights that were sampled from
    received = re.findall(r"weights received: (\S+)", log(tmp_path))
    assert len({*received}) >= 3
    final, first = (
        load_file(Path(place) / "model.safetensors")
        for place in (tmp_path / result["model"], sentinel.read_sentinel(checkpoint)["model"])
    )
    assert any(not (final[name] == weight).all() for name, weight in first.items())


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [1, 2])
def test_its_server_samples_ahead_while_it_learns(ahead, checkpoint, tmp_path):
    command = arguments(checkpoint, max_staleness=ahead)
    assert start(tmp_path, command, WATCHED="yes", DIES_AT_STEP="6").wait(900) == -signal.SIGKILL
    assert start(tmp_path, command, WATCHED="yes").wait(900) == 0, (tmp_path / "err.txt").read_text()
    assert "resuming from step 4 of 8" in (tmp_path / "out.txt").read_text()
    found = ahead_witness.rows(tmp_path)
    assert [row["rollout"] for row in found] == [0, 1, 2, 2, 3]  # the third one again after the kill
    ahead_witness.check(found, ahead)


@pytest.mark.slow
def test_a_server_that_cannot_start_is_one_line(checkpoint, tmp_path):
    assert start(tmp_path, arguments(checkpoint), STAND_IN_FAILS="yes").wait(900) == 2
    line = stage_runs.error_line(tmp_path)
    says = "error: vllm_mode: the vLLM server ended with status 1: ValueError: No available memory for the ca"
    assert says in line
