"""GRPO through a real vLLM server that the stage starts; only NCCL, which needs GPUs, has a stand-in."""

import signal
import subprocess
import time
from pathlib import Path

import ahead_witness
import vllm_contract as contract

STAGE = """
import os, sys
from types import SimpleNamespace
import stage_runs
import vllm_cpu_build
from trl.generation import vllm_client
if "WATCHED" in os.environ:
    import ahead_witness
    ahead_witness.watch()
if "DIES_AT_STEP" in os.environ:
    stage_runs.at_training_step(int(os.environ["DIES_AT_STEP"]))
vllm_cpu_build.register()
# TRL sends weights from a GPU alone: here it takes the CPU for one
vllm_client.torch = SimpleNamespace(device=lambda _: SimpleNamespace(type="cuda", index=None))
from encore.stages.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def processes() -> list[tuple[int, int, str]]:
    """(parent, session, command) of each process of this machine that has not ended."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            status, command = (place / "stat").read_text(), (place / "cmdline").read_text()
        except OSError:  # ended meanwhile
            continue
        state, parent, _, session, *_ = status.rpartition(")")[2].split()
        if state != "Z":
            found.append((int(parent), int(session), command))
    return found


def session(stage: subprocess.Popen[str]) -> int:
    """The session of a stage's server, once there is one."""
    while stage.poll() is None:
        for parent, own, command in processes():
            if parent == stage.pid and "encore.runtime.guard" in command:
                return own
        time.sleep(0.1)
    raise AssertionError("the stage has started no server")


def members(own: int) -> list[str]:
    return [command for _, session, command in processes() if session == own]


def gone(own: int) -> bool:
    deadline = time.monotonic() + 30
    while (left := members(own)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not left


def test_it_trains_through_a_server_that_does_not_outlive_it(policy, tmp_path):
    command = ["-c", STAGE, *contract.grpo(policy, {"vllm_mode": "server"})]
    stage = contract.start(tmp_path, command, DIES_AT_STEP="6")
    server = session(stage)
    contract.ended(tmp_path, stage, -signal.SIGKILL)
    assert gone(server)

    stage = contract.start(tmp_path, command)
    server = session(stage)
    contract.ended(tmp_path, stage)
    assert not members(server)
    assert "resuming from step 4 of 8" in (tmp_path / "out.txt").read_text()
    gaps = contract.values(tmp_path, "sampling/sampling_logp_difference/max")
    assert len(gaps) == 4
    assert max(gaps) < 1e-4  # so it was always the newest weights that were sampled from
    # in float32 on a CPU the old ones are those of the whole rollout's batch, which rounds otherwise (`fine`)
    assert max(contract.values(tmp_path, "ratio/at_start")) < 1e-5
    assert "error" not in (tmp_path / "out.txt").read_text()


def test_its_server_samples_ahead_while_it_learns(policy, tmp_path):
    command = ["-c", STAGE, *contract.grpo(policy, {"vllm_mode": "server"}, max_staleness=1)]
    contract.ended(tmp_path, contract.start(tmp_path, command, WATCHED="yes"))
    found = ahead_witness.rows(tmp_path)
    assert [row["rollout"] for row in found] == [0, 1, 2, 3]
    ahead_witness.check(found, 1)
    assert contract.values(tmp_path, "staleness/mean") == [0, 1, 1, 1]
    gaps = contract.values(tmp_path, "sampling/sampling_logp_difference/max")
    assert gaps[0] < 1e-4 < min(gaps[1:])
