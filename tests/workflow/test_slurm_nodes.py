"""A stage on two nodes of a real Slurm, which is started for these tests where it is installed.

test_several_nodes has more, by programs that stand in for Slurm's.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import node_runs
import own_slurm
import pytest
import yaml
from node_runs import ROOT

# the first time, before the second checkpoint
ONCE = """
    def trap(step):
        if step == 6 and not os.path.exists("killed"):
            open("killed", "w").close()
            os.kill(os.getpid(), 9)
"""
RECIPE = {
    "schema": 2,
    "title": "Two nodes",
    "url": "https://slurm.schedmd.com",
    "cost": {"cpu": "seconds"},
    "found": "A stage trains on two nodes.",
    "stages": {
        "pretrain": {
            "run": "pretrain",
            "resources": {"nodes": 2, "gpu": 2, "mem_mb": 3000},
            **node_runs.config(),
        }
    },
    "evals": {
        "backend": "hf",
        "checkpoints": {"after": "pretrain"},
        "tasks": {
            "heldout": {
                **{key: node_runs.config()[key] for key in ("task", "template")},
                **{"items": 8, "samples": 1, "temperature": 1.0, "top_p": 1.0, "max_gen_toks": 12, "k": [1]},
            }
        },
    },
    "scales": {"cpu": {"about": "The only one."}},
    "arms": {"base-recipe": {"about": "The only one."}},
}
MADE = "results/two_nodes/cpu/base-recipe/seed0/pretrain"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(own_slurm.lacks()), reason=f"Slurm is not installed here: {', '.join(own_slurm.lacks())} missing"
    ),
]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with own_slurm.cluster(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


STAGE = node_runs.command("--gpus", "0", "--nodes", "2")
# says which GPUs it has, and starts itself on the nodes that its first argument names
NESTED = """
import os, subprocess, sys
from encore.runtime import nodes
gpus, cores = os.environ.pop("CUDA_VISIBLE_DEVICES", "none"), os.environ["SLURM_CPUS_ON_NODE"]
print(os.environ["SLURMD_NODENAME"], gpus, cores, flush=True)
if sys.argv[1:]:
    command = [*nodes.step(sys.argv[1].split(","), 2), sys.executable, __file__, *sys.argv[2:]]
    sys.exit(subprocess.run(command, env=nodes.environment_of_step(os.environ)).returncode)
"""


def environment(slurm: dict[str, str], folder: Path, trap: str) -> dict[str, str]:
    own = node_runs.environment(folder, trap, str(Path(sys.executable).parent))
    return own | {
        "PATH": f"{slurm['PATH'].partition(':')[0]}:{own['PATH']}",
        "SLURM_CONF": slurm["SLURM_CONF"],
    }


@pytest.fixture
def project(tmp_path):
    """The real Snakefile, profile and code with one recipe, whose stage asks for two nodes."""
    for name in ("encore", "recipes", "evals", "analysis"):
        keep = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=keep)
    for recipe in (tmp_path / "recipes").glob("*.yaml"):
        recipe.unlink()
    (tmp_path / "recipes/two_nodes.yaml").write_text(yaml.safe_dump(RECIPE, sort_keys=False))
    profile = own_slurm.filled((ROOT / "profiles/slurm/config.yaml").read_text())
    (tmp_path / "profiles/slurm").mkdir(parents=True)
    (tmp_path / "profiles/slurm/config.yaml").write_text(profile)
    text = (ROOT / "Snakefile").read_text()
    (tmp_path / "Snakefile").write_text(text.replace('QUICKSTART = "r1_zero"', 'QUICKSTART = "two_nodes"'))
    return tmp_path


@pytest.mark.fault(
    "kill -9 of a process",
    "a stage on two nodes of Slurm",
    "one line names node and log; tried again from the checkpoint",
)
def test_snakemake_runs_a_stage_on_two_nodes_and_again_after_a_kill(slurm, project):
    own = environment(slurm, project, ONCE)
    own["PYTHONPATH"] = f"{project / 'site'}:{project}"
    command = [Path(sys.executable).with_name("snakemake"), f"{MADE}/metrics.json"]
    command += ["--workflow-profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "3"]
    done = subprocess.run(command, cwd=project, env=own, capture_output=True, text=True, timeout=900)
    logs = [path.read_text() for path in sorted(project.glob(".snakemake/slurm_logs/**/*.log"))]
    assert done.returncode == 0, "\n".join([done.stdout, done.stderr, *logs])
    (failed,) = logs  # that of a job that succeeds is removed
    says = rf"error: node n2: process 1: ended by SIGKILL; see {MADE}/train\.node1\.log$"
    assert len(re.findall(says, failed, re.MULTILINE)) == 1, failed
    provenance = json.loads((project / MADE / "provenance.json").read_text())
    assert provenance["resumed"] == 1
    assert (provenance["hardware"]["nodes"], provenance["hardware"]["processes"]) == (2, 2)


def submitted(
    slurm: dict[str, str], folder: Path, trap: str = node_runs.NOTHING, words: Sequence[str] = STAGE
) -> str:
    """A job of two nodes with two GPUs each that runs a command; its number."""
    own = environment(slurm, folder, trap)
    script = folder / "job.sh"
    script.write_text(f"#!/bin/sh\nexec {shlex.join(words)} 2> {node_runs.LOG}\n")
    asked = ["--nodes=2", "--ntasks=2", "--gpus=4", "--cpus-per-gpu=4", "--mem=3000", "--no-requeue"]
    command = ["sbatch", "--parsable", *asked, f"--output={folder / 'out.txt'}", str(script)]
    return subprocess.run(
        command, cwd=folder, env=own, capture_output=True, text=True, check=True
    ).stdout.strip()


def waited(slurm: dict[str, str], job: str, folder: Path) -> str:
    """What a job has printed, once it and all its processes have ended."""
    deadline = time.monotonic() + 300
    asked = ["squeue", "--noheader", "--jobs", job]
    while subprocess.run(asked, env=slurm, capture_output=True, text=True).stdout or node_runs.left(folder):
        assert time.monotonic() < deadline, node_runs.left(folder)
        time.sleep(0.2)
    return (folder / "out.txt").read_text()


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        (["n1", "n2"], ["n1 0,1 8", "n1 0,1 8", "n2 0,1 8"]),  # a vLLM server, started by what trains
        (["n1,n2"], ["n1 0,1 8", "n1 0,1 8", "n2 0,1 8"]),
    ],
)
def test_each_node_has_all_its_gpus_and_processors(nodes, says, slurm, tmp_path):
    (tmp_path / "nested.py").write_text(NESTED)
    job = submitted(slurm, tmp_path, words=[sys.executable, "nested.py", *nodes])
    out = waited(slurm, job, tmp_path)
    assert sorted(out.splitlines()) == says, (tmp_path / node_runs.LOG).read_text()


@pytest.mark.fault(
    "kill -9 of a launcher", "a stage on two nodes of Slurm", "one line names the node; no process is left"
)
def test_a_launcher_that_is_killed_is_told_and_leaves_nothing(slurm, tmp_path):
    out = waited(slurm, submitted(slurm, tmp_path, node_runs.LAUNCHER_KILLED), tmp_path)
    line = node_runs.error_line(out)
    says = "error: node n2: its launcher ended: Killed; see results/pretrain/train.node1.log"
    assert line.endswith(says), (tmp_path / node_runs.LOG).read_text()


@pytest.mark.fault(
    "a node is set DOWN", "a stage on two nodes of Slurm", "Slurm's own line; no result is written"
)
def test_a_node_that_is_gone_ends_the_job(slurm, tmp_path):
    job = submitted(slurm, tmp_path, "trap = lambda step: open('trains', 'w').close()")
    while not (tmp_path / "trains").exists():
        time.sleep(0.1)
    asked = ["scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=test"]
    subprocess.run(asked, env=slurm, check=True)
    out = waited(slurm, job, tmp_path)
    assert "DUE TO NODE FAILURE" in node_runs.error_line(out)  # Slurm's own line
    assert not (tmp_path / "results/pretrain/metrics.json").exists()
