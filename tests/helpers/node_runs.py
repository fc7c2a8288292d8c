"""A stage on two nodes: its command, what goes wrong in it, and what it leaves.

A trap is the text of a function `trap(step)` that a process calls at the start of each training step.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import stage_runs

ROOT = Path(__file__).parents[2]
STAND_IN = ROOT / "tests/helpers/slurm_stand_in"
LOG = "results/pretrain/train.log"
MARK = "ENCORE_TEST_RUN"  # names a run in the environment of all its processes
# read by Python itself as it starts, in every process of the run
SITE = """
import os, sys
if "encore.runtime.node" in sys.orig_argv:
    # torch sees no GPU here; a node has those that it is given
    from encore.runtime import gpus
    gpus._visible = lambda: [name for name in os.environ.get(gpus.VISIBLE, "").split(",") if name]
    gpus.unusable = lambda count: None
if "TORCHELASTIC_RUN_ID" in os.environ:
    import torch
    # transformers loads the optimizer of several processes to "cpu:0", a device that torch does not know
    torch.serialization.register_package(
        0, lambda at: None, lambda at, place: at if place == "cpu:0" else None
    )
    {trap}
    from encore.learning.resumable import Resumable
    plain = Resumable.training_step
    def step(self, *args, **kwargs):
        if os.environ["RANK"] == "1":
            trap(self.state.global_step)
        return plain(self, *args, **kwargs)
    Resumable.training_step = step
"""
NOTHING = "trap = lambda step: None"
KILLED = "trap = lambda step: step == 6 and (open('killed', 'w').close(), os.kill(os.getpid(), 9))"
# an error of the process, not of a user
RAISES = "trap = lambda step: step == 2 and open('/nowhere')"
LAUNCHER_KILLED = "trap = lambda step: step == 2 and os.kill(os.getppid(), 9)"


def config() -> dict[str, Any]:
    args = dict(stage_runs.PRETRAIN["args"])
    batch = args["per_device_train_batch_size"] * args.pop("gradient_accumulation_steps")
    return {**stage_runs.PRETRAIN, "args": args, "global_batch": batch}


def command(*options: str) -> list[str]:
    """The stage in the working folder, with the options that say what it is run on."""
    own = stage_runs.command("pretrain", config())
    return [sys.executable, "-m", "encore.stages", "pretrain", *own, *options]


def environment(folder: Path, trap: str, path: str) -> dict[str, str]:
    """Where `trap` is laid, in a file of `folder`; `path` goes before PATH."""
    site = folder / "site"
    site.mkdir(parents=True, exist_ok=True)
    (site / "sitecustomize.py").write_text(SITE.format(trap=trap))
    (folder / LOG).parent.mkdir(parents=True, exist_ok=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    return own | {
        "PYTHONPATH": f"{site}:{ROOT}",
        "PATH": f"{path}:{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        MARK: str(folder),
    }


def left(folder: Path) -> list[str]:
    """The command lines of processes of runs in `folder` that have not ended."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            given = (process / "environ").read_bytes().split(b"\0")
            if f"{MARK}={folder}".encode() in given:
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def made_on(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results/pretrain/provenance.json").read_text())["hardware"]


def error_line(out: str) -> str:
    """The one line of what a run has printed that says why it failed."""
    lines = [line for line in out.splitlines() if "error" in line.lower()]
    assert len(lines) == 1, out
    return lines[0]
