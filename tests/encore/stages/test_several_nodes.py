"""A stage on two nodes, by programs that stand in for Slurm's: they speak as it does, on this machine alone.

tests/workflow/test_slurm_nodes.py does the same on a real Slurm.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import node_runs
import pytest
import stage_runs
import test_vllm_stage
from node_runs import LOG
from test_several_processes import require_same
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from encore.errors import UserError
from encore.runtime import nodes
from encore.runtime.nodes import Failure
from encore.stages.__main__ import parse

TWO = ("--gpus", "0", "--nodes", "2")


def start(folder: Path, trap: str = node_runs.NOTHING, options: tuple[str, ...] = TWO, **more: str):
    environment = node_runs.environment(folder, trap, str(node_runs.STAND_IN)) | {"SLURM_JOB_ID": "7"} | more
    with (folder / LOG).open("w") as log:
        return subprocess.Popen(
            node_runs.command(*options),
            cwd=folder,
            env={name: value for name, value in environment.items() if value},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )


def run(folder: Path, *args, **more) -> tuple[int, str]:
    """Exit status of a stage, and what it prints."""
    process = start(folder, *args, **more)
    out = process.communicate(timeout=400)[0]
    return process.returncode, out


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A stage that two nodes have finished."""
    folder = tmp_path_factory.mktemp("whole")
    status, out = run(folder, SLURM_NTASKS="1", SLURM_STEP_ID="3")  # of a step around it: no option of ours
    assert status == 0, out + (folder / LOG).read_text()
    assert out.splitlines()[0].endswith("pretrain] training on n1 and 1 more")
    assert out.count("starting at step 0 of 18") == 1
    return folder


@pytest.mark.slow
def test_two_nodes_give_the_weights_of_one_process(whole, tmp_path):
    status, out = run(tmp_path, options=("--gpus", "0"))
    assert status == 0, out
    require_same(whole / "checkpoints/pretrain", tmp_path / "checkpoints/pretrain")
    on = node_runs.made_on(whole)
    assert (on["nodes"], on["processes"], on["global_batch"]) == (2, 2, 32)
    assert node_runs.made_on(tmp_path)["nodes"] == 1
    assert (whole / "results/pretrain/train.node1.log").exists()


@pytest.mark.fault(
    "kill -9 of one of several processes", "a stage on two nodes", "goes on from the checkpoint; same bits"
)
@pytest.mark.slow
def test_a_process_is_killed_and_the_stage_goes_on(whole, tmp_path):
    """Each process from its own part of the checkpoint, to the same bytes."""
    status, out = run(tmp_path, node_runs.KILLED)
    assert time.time() - (tmp_path / "killed").stat().st_mtime < 60  # NCCL alone waits ten minutes
    assert status == 2, out + (tmp_path / LOG).read_text()
    line = node_runs.error_line(out)
    assert line.endswith("error: node n2: process 1: ended by SIGKILL; see results/pretrain/train.node1.log")
    assert line.removeprefix("[r/cpu/a/seed3 pretrain] ") in (tmp_path / LOG).read_text()
    assert not node_runs.left(tmp_path)
    status, out = run(tmp_path)
    assert status == 0, out + (tmp_path / LOG).read_text()
    assert "resuming from step 4" in out
    assert stage_runs.outputs(tmp_path, "pretrain") == stage_runs.outputs(whole, "pretrain")


@pytest.mark.slow
def test_an_error_is_told_once_with_its_node(tmp_path):
    status, out = run(tmp_path, node_runs.RAISES)
    assert status == 2, out + (tmp_path / LOG).read_text()
    says = (
        "error: node n2: process 1: FileNotFoundError: [Errno 2] No such file or directory: '/nowhere'; see "
    )
    assert node_runs.error_line(out).endswith(f"{says}results/pretrain/train.node1.log")
    assert "Traceback" in (tmp_path / "results/pretrain/train.node1.log").read_text()
    assert not node_runs.left(tmp_path)


@pytest.mark.slow
def test_nothing_outlives_what_has_started_it(tmp_path):
    process = start(tmp_path)
    assert process.stdout
    while "starting at step" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 60
    while node_runs.left(tmp_path):
        assert time.monotonic() < deadline, node_runs.left(tmp_path)
        time.sleep(0.2)


# TRL sends weights from a GPU alone: here it takes the CPU for one
GPU = """
    from types import SimpleNamespace
    from trl.generation import vllm_client
    vllm_client.torch = SimpleNamespace(device=lambda _: SimpleNamespace(type="cuda", index=None))
"""


@pytest.mark.slow
def test_the_vllm_server_has_the_last_node(checkpoint, tmp_path):
    environment = node_runs.environment(tmp_path, node_runs.NOTHING + GPU, str(node_runs.STAND_IN))
    path = f"{tmp_path / 'site'}:{test_vllm_stage.STAND_IN}:{node_runs.ROOT}"
    environment |= {"SLURM_JOB_ID": "7", "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "0"}
    words = [*test_vllm_stage.arguments(checkpoint), "--gpus", "2", "--nodes", "2", "--vllm-gpus", "1"]
    log = tmp_path / "results/grpo/vllm.log"

    def run(**more: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "encore.stages", *words]
        own = environment | more
        done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=400)
        assert not node_runs.left(tmp_path)
        return done.returncode, done.stdout, done.stderr

    status, out, errors = run(STAND_IN_DIES_AT="1")
    assert status == 2, errors
    line = node_runs.error_line(out)
    says = (
        "error: node n1: process 0: vllm_mode: the vLLM server ended with status 1: RuntimeError: CUDA error"
    )
    assert says in line
    assert line.endswith("; see results/grpo/vllm.log")
    assert "srun: error: n2: task 0: Exited with exit code 1" in log.read_text()

    status, out, errors = run()
    assert status == 0, errors
    assert "training on n1, the vLLM server on n2" in out
    assert log.read_text().count("weights received") >= 3
    on = json.loads((tmp_path / "results/grpo/provenance.json").read_text())["hardware"]
    assert (on["nodes"], on["processes"]) == (1, 1)


@pytest.mark.slow
def test_outside_of_slurm_it_is_refused_before_anything_starts(tmp_path):
    status, out = run(tmp_path, SLURM_JOB_ID="")
    assert status == 2
    says = "resources.nodes: 2 asked for, but this is no Slurm job; run snakemake with --workflow-profile"
    assert f"error: {says}" in node_runs.error_line(out)
    assert "Traceback" not in (tmp_path / LOG).read_text()


def test_by_hand_the_gpus_of_several_nodes_are_counted():
    """On one, all that torch sees are taken."""
    with pytest.raises(UserError, match=r"^--gpus: missing; with --nodes it is the number"):
        parse(["pretrain", *stage_runs.command("pretrain", {}), "--nodes", "2"])


def test_a_process_tells_its_error_in_one_line(tmp_path, monkeypatch):
    """In the form that torchrun reads."""
    file = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(file))
    nodes.note(RuntimeError("CUDA out of memory\nTried to"))
    failure = ProcessFailure(local_rank=0, pid=1, exitcode=1, error_file=str(file))
    assert failure.message == "RuntimeError: CUDA out of memory"


REPORT = nodes.FAILED + '{"node": "n1", "what": "lost {n2}", "at": 8.0, "killed": false}'
FAILURES = {"n1": Failure("lost {n2}", 8.0), "n2": Failure("boom", 7.5, True)}
OTHER = nodes.FAILED + '{"node": "n2", "what": "boom", "at": 7.5, "killed": true}'


@pytest.mark.parametrize(
    ("line", "found", "others"),
    [
        (f"{REPORT}\n", ["n1"], ""),
        (f"{REPORT}{OTHER}\n", ["n1", "n2"], ""),
        (f"step 3{REPORT}\n", ["n1"], "step 3\n"),
        (f"{REPORT}step 3\n", ["n1"], "step 3\n"),
        ("step 3\n", [], "step 3\n"),
        ("\n", [], "\n"),
    ],
)
def test_reports_are_read_whatever_lies_in_their_line(line, found, others):
    """As processes write that do not buffer their output."""
    failures, left = nodes.read_failures(line)
    assert ([*failures], left) == (found, others)
    assert all(failures[name] == FAILURES[name] for name in found)


@pytest.mark.parametrize(
    ("count", "path", "says"),
    [
        (nodes.Count(3, 0, 0), f"{node_runs.STAND_IN}:/usr/bin:/bin", "3 asked for, but Slurm job 7 has 2$"),
        (nodes.Count(2, 0, 0), "/nowhere", "scontrol: No such file or directory$"),
        (
            nodes.Count(2, 3, 0),
            f"{node_runs.STAND_IN}:/usr/bin:/bin",
            "3 GPUs on 2 nodes, 0 of them for a vLLM",
        ),
        (
            nodes.Count(2, 4, 1),
            f"{node_runs.STAND_IN}:/usr/bin:/bin",
            "4 GPUs on 2 nodes, 1 of them for a vLLM",
        ),
    ],
)
def test_what_slurm_does_not_have_is_told(count, path, says, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("PATH", path)
    with pytest.raises(UserError, match=f"^resources.nodes: {says}"):
        nodes.launch(count, [], Path("r/train.log"), str)


@pytest.mark.parametrize(
    ("failures", "said", "line"),
    [
        (
            {"n1": Failure("process 0: reset", 8.0), "n2": Failure("process 9: boom", 7.5)},
            ["srun: error: n1: task 0: Exited with exit code 1"],
            "node n2: process 9: boom; see r/train.node1.log",
        ),
        (
            {"n1": Failure("process 0: reset", 7.4), "n2": Failure("process 9: ended by SIGKILL", 7.5, True)},
            [],
            "node n2: process 9: ended by SIGKILL; see r/train.node1.log",
        ),
        ({}, ["srun: error: n2: task 1: Killed", "srun: error: n1: task 0: Terminated"],
         "node n2: its launcher ended: Killed; see r/train.node1.log"),
        ({"n1": Failure("process 0: reset", 7.4)}, ["srun: error: n2: task 1: Killed"],
         "node n2: its launcher ended: Killed; see r/train.node1.log"),
        ({}, ["srun: warning: x", "srun: error: Unable to create step for job 7: Invalid node name"],
         "resources.nodes: srun ended with status 1: Unable to create step for job 7: Invalid node name; "
         "see r/train.log"),
        ({}, [], "resources.nodes: srun ended with status 1: no word; see r/train.log"),
    ],
)  # fmt: skip
def test_the_first_failure_is_told(failures, said, line):
    """The others have lost the one that failed first, and say so a moment later."""
    assert nodes.failure_line(1, failures, said, ["n1", "n2"], Path("r/train.log")) == line


def test_a_step_is_told_of_no_other():
    given = {
        "PATH": "/bin",
        "SLURM_JOB_ID": "7",
        "SLURM_NTASKS": "8",
        "SLURM_CPU_BIND": "x",
        "SLURM_CONF": "/c",
    }
    assert nodes.environment_of_step(given) == {"PATH": "/bin", "SLURM_JOB_ID": "7", "SLURM_CONF": "/c"}
    assert os.environ.get("SLURM_NTASKS") is None
