"""Five hundred jobs are planned and are all in the queue of a real Slurm within minutes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import own_slurm
import pytest

JOBS = 500
MINUTES = 5.0  # a twentieth of it was measured; a busy machine is no reason to fail
GRID = """
schema: 2
title: Many
url: https://example.org/many
seeds: 250
stages:
  alone: {run: toy, dial: 1}
scales:
  cpu: {about: here}
arms:
  base-recipe: {about: the first}
  hot: {about: the second, stages: {alone: {dial: 2}}}
evals: {}
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(own_slurm.lacks()), reason=f"Slurm is not installed here: {', '.join(own_slurm.lacks())} missing"
    ),
]


def queued(environment: dict[str, str]) -> list[str]:
    """The comment of each job in the queue."""
    command = ["squeue", "--noheader", "--format=%k"]
    return subprocess.run(command, env=environment, capture_output=True, text=True).stdout.splitlines()


def test_five_hundred_jobs_are_queued_in_minutes(project, tmp_path_factory):
    """The partition starts none of them, so that what is timed is planning and submission."""
    (project.folder / "recipes/many.yaml").write_text(GRID)
    profile = project.folder / "profiles/slurm/config.yaml"
    profile.write_text(own_slurm.filled(profile.read_text()))
    log = project.folder / "head.txt"
    with own_slurm.cluster(tmp_path_factory.mktemp("slurm")) as slurm, log.open("w") as said:
        subprocess.run(["scontrol", "update", "PartitionName=main", "State=DOWN"], env=slurm, check=True)
        path = f"{slurm['PATH'].partition(':')[0]}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        command = [str(Path(sys.executable).with_name("snakemake")), "many", "--jobs", str(JOBS)]
        command += ["--workflow-profile", "profiles/slurm"]
        began = time.monotonic()
        head = subprocess.Popen(
            command,
            cwd=project.folder,
            process_group=0,
            stdout=said,
            stderr=said,
            env=os.environ | {"PATH": path, "SLURM_CONF": slurm["SLURM_CONF"]},
        )
        try:
            while len(queued(slurm)) < JOBS:
                assert head.poll() is None, log.read_text()[-6000:]
                assert time.monotonic() - began < MINUTES * 60, log.read_text()[-6000:]
                time.sleep(0.5)
            print(f"{JOBS} jobs in the queue after {time.monotonic() - began:.0f} s")
            assert len({*queued(slurm)}) == JOBS  # each its own stage
        finally:
            os.killpg(head.pid, signal.SIGKILL)
            head.wait()
