"""A grid of arms and seeds on both nodes of a real Slurm, through all that goes wrong there in a long run.

The stages take no time but what they are told to, and keep their state as real ones do; a real one on two
nodes is in test_slurm_nodes.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import own_slurm
import pytest

PATIENCE = 600.0  # seconds; a busy machine is no reason to fail
CHOSEN = ("--config", "arms=base-recipe,hot")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(own_slurm.lacks()), reason=f"Slurm is not installed here: {', '.join(own_slurm.lacks())} missing"
    ),
]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[dict[str, str]]:
    with own_slurm.cluster(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.fixture
def head(project, slurm) -> Iterator[Callable[[], subprocess.Popen]]:
    """Starts the process that submits the jobs of both seeds of two arms, in a process group of its own."""
    path = f"{slurm['PATH'].partition(':')[0]}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "SLURM_CONF": slurm["SLURM_CONF"], "TOY_SLEEP": "2"}
    command = [str(Path(sys.executable).with_name("snakemake")), "demo"]
    command += [
        *CHOSEN,
        "--workflow-profile",
        "profiles/slurm",
        "--slurm-init-seconds-before-status-checks",
        "2",
    ]
    started: list[subprocess.Popen] = []

    def start() -> subprocess.Popen:
        with (project.folder / "head.txt").open("a") as log:
            given = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "env": environment}
            started.append(subprocess.Popen(command, cwd=project.folder, process_group=0, **given))
        return started[-1]

    yield start
    for one in started:  # of a test that failed
        if one.poll() is None:
            os.killpg(one.pid, signal.SIGKILL)
            one.wait()


def running(slurm: dict[str, str]) -> dict[str, str]:
    """Number -> node of each job that runs."""
    command = ["squeue", "--noheader", "--states=running", "--format=%i|%N"]
    said = subprocess.run(command, env=slurm, capture_output=True, text=True).stdout
    return dict(line.split("|") for line in said.splitlines())


def until(holds: Callable[[], object], process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert process.poll() is None, log.read_text()[-6000:]
        assert time.monotonic() < deadline, log.read_text()[-6000:]
        time.sleep(0.1)


def digests(folder: Path) -> dict[str, str]:
    """Stage -> the digest of its weights; evaluation -> that of what it has measured."""
    made = [
        *folder.glob("results/*/cpu/*/seed*/*/metrics.json"),
        *folder.glob("results/*/cpu/*/seed*/evals/*.json"),
    ]
    return {str(path.relative_to(folder)): json.loads(path.read_text())["digest"] for path in made}


def told(slurm: dict[str, str], *words: str) -> None:
    subprocess.run(["scontrol", *words], env=slurm, check=True, capture_output=True)


def is_back(slurm: dict[str, str], node: str) -> bool:
    """Whether a node that was DOWN takes jobs; asked to, for that is refused while its jobs are ending.

    It is refused too where the node has come back by itself.
    """
    subprocess.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"], env=slurm, capture_output=True)
    command = ["sinfo", "--noheader", "--partition=main", "--nodes", node, "--format=%t"]
    state = subprocess.run(command, env=slurm, capture_output=True, text=True).stdout.strip()
    return state in ("idle", "mix", "alloc")


def noted(project) -> str:
    """What the stages have noted as they began: each its name, and the step that it went on from."""
    file = project.folder / "jobs.txt"
    return file.read_text() if file.exists() else ""


def work_begins(project, already: int) -> bool:
    """Whether more stages than these have noted that they work."""
    return len(noted(project).splitlines()) > already


def saved(project) -> bool:
    """Whether a stage that is not done has come to its second step."""
    return any(
        state.read_text() == "1" and not (state.parent / "final").exists()
        for state in (project.folder / "checkpoints").rglob("state.json")
    )


def makes_way(slurm: dict[str, str], project) -> bool:
    """Whether a stage that had saved something was pre-empted and has gone on; another job may be met."""
    for _ in range(30 if displaced(slurm, project) else 0):
        if " from 1 " in noted(project) or " from 2 " in noted(project):
            return True
        time.sleep(1)
    return False


def displaced(slurm: dict[str, str], project) -> bool:
    """Whether a job was, where a stage has saved something; without the minutes that Slurm has it wait."""
    for job, node in running(slurm).items() if saved(project) else ():
        urgent = ["sbatch", "--wait", "--partition=urgent", f"--nodelist={node}", "--exclusive"]
        subprocess.run([*urgent, "--output=/dev/null", "--wrap=true"], env=slurm, check=True)
        command = ["scontrol", "show", "job", job, "--oneliner"]
        if " Restarts=1 " in subprocess.run(command, env=slurm, capture_output=True, text=True).stdout:
            told(slurm, "update", f"JobId={job}", "StartTime=now")
            return True
    return False


@pytest.mark.fault(
    "scancel, pre-emption, a node DOWN, slurmctld restarted, the head killed",
    "a grid of arms and seeds on two nodes of Slurm",
    "the same command ends it; digests of a local run",
)
def test_the_grid_ends_as_on_one_machine_through_every_fault(slurm, project, head, tmp_path_factory):
    local = type(project)(tmp_path_factory.mktemp("local") / "run")
    shutil.copytree(project.folder, local.folder)
    assert local.run("demo", *CHOSEN)
    profile = project.folder / "profiles/slurm/config.yaml"
    profile.write_text(own_slurm.filled(profile.read_text()))
    log, nodes = project.folder / "head.txt", set()

    def both_at_work() -> bool:
        nodes.update(running(slurm).values())
        return len(running(slurm)) >= 2 and work_begins(project, 0)

    first = head()
    until(both_at_work, first, log)

    job = next(iter(running(slurm)))  # a user's mistake
    subprocess.run(["scancel", job], env=slurm, check=True)
    until(lambda: job not in running(slurm), first, log)

    until(lambda: makes_way(slurm, project), first, log)  # something more urgent

    until(lambda: running(slurm), first, log)  # a machine that fails while it works
    node = next(iter(running(slurm).values()))
    told(slurm, "update", f"NodeName={node}", "State=DOWN", "Reason=test")
    until(lambda: node not in running(slurm).values(), first, log)
    until(lambda: is_back(slurm, node), first, log)

    told(slurm, "shutdown", "slurmctld")  # Slurm itself is restarted
    time.sleep(3)
    config = slurm["SLURM_CONF"]
    with (project.folder / "slurmctld.txt").open("w") as said:
        restarted = subprocess.Popen(["slurmctld", "-D", "-f", config], env=slurm, stdout=said, stderr=said)
    try:
        until(lambda: running(slurm) and saved(project), first, log)
        os.killpg(first.pid, signal.SIGKILL)  # the login node goes down
        first.wait()
        left = running(slurm)
        assert left
        second = head()
        until(lambda: "of an earlier run still in Slurm" in log.read_text(), second, log)

        def seen() -> bool:
            nodes.update(running(slurm).values())
            return second.poll() is not None

        deadline = time.monotonic() + PATIENCE
        while not seen():
            assert time.monotonic() < deadline, log.read_text()[-6000:]
            time.sleep(0.5)
        assert second.returncode == 0, log.read_text()[-6000:]
        assert not running(slurm)
    finally:
        restarted.terminate()
        restarted.wait()
    assert nodes == {"n1", "n2"}
    assert digests(project.folder) == digests(local.folder)
    assert project.run("demo", *CHOSEN) == []  # and here nothing is left to do
