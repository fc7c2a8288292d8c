"""Recipe r1, cut short and killed in each stage: the same command goes on and ends with the same bits."""

import copy
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import code_copy
import kill_once
import pytest
import yaml
from papers import RECIPES

from encore.recipe.layers import merge

ROOT = Path(__file__).parents[2]
SEED = "r1/cpu/base-recipe/seed0"
STAGES = {*RECIPES["r1"].stages("cpu", "base-recipe")}
DATA = {"rejection", "sample", "label"}  # these start again
SUMS = {"task": {"terms": [2, 2]}}  # so short that a policy of a few steps gets some right
# rollouts of 8 prompts x 4 completions last 4 steps; checkpoints at 3 and 6 are in mid-rollout
RL = {
    "max_steps": 8,
    "save_steps": 3,
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "max_completion_length": 24,
}
FINE_TUNING = {"max_steps": 8, "save_steps": 3, "per_device_train_batch_size": 4}
SHORT: dict[str, Any] = {  # of scale cpu
    **{name: {**SUMS, "problems": 16, "args": RL} for name in ("zero", "reasoning", "scenarios")},
    "cold_start": {**SUMS, "corpus": {"documents": 32}, "args": FINE_TUNING},
    "rejection": {**SUMS, "problems": 96, "args": {"num_generations": 8, "max_completion_length": 24}},
    "sft": {"args": FINE_TUNING},
    "sample": {"problems": 24, "args": {"max_completion_length": 40}},
    "reward_model": {"args": {"per_device_train_batch_size": 2, "save_steps": 3}},
    "preference": {
        "domains": {"reasoning": {**SUMS, "problems": 16}, "general": {"problems": 16}},
        "args": RL | {"max_completion_length": 40},
    },
}
BASE = {  # of arm bilingual of tiny_lm: a corpus from which the form of a trace is soon learnt
    **SUMS,
    "corpus": {
        "documents": 2048,
        "mixture": {
            **dict.fromkeys(("direct", "mixed", "messy", "untagged", "truncated")),
            "one_language": {"weight": 1.0, "other": 0.0, "error": 0.0},
        },
    },
    "args": {"gradient_accumulation_steps": 1, "max_steps": 80, "warmup_steps": 10},
}


def shorten(folder: Path, recipe: str, at: tuple[str, str], stages: dict[str, Any]) -> None:
    """Write the recipe into `folder` with other stages at scales/cpu or at an arm."""
    spec = copy.deepcopy(RECIPES[recipe].files.joined())
    spec.pop("dials", None)  # their sweep is another recipe
    section, name = at
    spec[section][name]["stages"] = merge(spec[section][name]["stages"], stages)
    path = folder / f"recipes/{recipe}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.dump(spec, Dumper=yaml.CSafeDumper, sort_keys=False))


def project(folder: Path) -> Path:
    """A folder with the code, where each stage can be killed, and the two recipes cut short."""
    code_copy.lay(folder)
    shutil.copy(kill_once.__file__, folder)
    main = folder / "encore/stages/__main__.py"
    before, run, after = main.read_text().partition("    outcome = run(")
    assert run
    main.write_text(f'{before}    importlib.import_module("kill_once").lay(options.name)\n{run}{after}')
    shorten(folder, "r1", ("scales", "cpu"), SHORT)
    shorten(folder, "tiny_lm", ("arms", "bilingual"), {"pretrain": BASE})
    return folder


def snakemake(folder: Path) -> int:
    """Exit status of the command that makes all stages; negative: the signal that ended it."""
    ends = [f"results/{SEED}/{stage}/metrics.json" for stage in ("zero", "preference")]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with (folder / "log.txt").open("a") as log:
        command = [Path(sys.executable).with_name("snakemake"), "--cores", "2", *ends]
        run = subprocess.Popen(command, cwd=folder, env=os.environ | {"PATH": path}, stdout=log, stderr=log,
                               start_new_session=True)  # fmt: skip
        return run.wait(900)


def outputs(folder: Path) -> dict[str, bytes]:
    """All that a run must give again, byte by byte: everything but times, logs and their digests."""
    made = [*folder.glob("results/r1/**/*"), *folder.glob("checkpoints/r1/**/*")]
    left_out = ("provenance.json", "timing.csv", "train.log", "lock")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in made
        if path.is_file() and path.name not in left_out and path.suffix != ".sha256"
    }


@pytest.mark.fault(
    "kill -9 of Snakemake and all its jobs",
    "in the middle of each of the nine stages of r1",
    "the same command goes on; same bits",
)
@pytest.mark.slow
def test_killed_in_each_stage_and_rerun(tmp_path: Path):
    whole, killed = (project(tmp_path / name) for name in ("whole", "killed"))
    assert snakemake(whole) == 0, (whole / "log.txt").read_text()
    for made in ("results/tiny_lm", "checkpoints/tiny_lm"):
        shutil.copytree(whole / made, killed / made)
    (killed / kill_once.KILLED).mkdir()
    statuses = [snakemake(killed)]
    while statuses[-1] == -signal.SIGKILL and len(statuses) <= len(STAGES):
        statuses.append(snakemake(killed))
    assert statuses[-1] == 0, (killed / "log.txt").read_text()
    assert {path.name for path in (killed / kill_once.KILLED).iterdir()} == STAGES
    expected, again = outputs(whole), outputs(killed)
    assert {f"results/{SEED}/{stage}/metrics.json" for stage in STAGES} <= expected.keys()
    assert [name for name in expected if again.get(name) != expected[name]] == []
    assert again.keys() == expected.keys()
    log = (killed / "log.txt").read_text()
    assert {stage for stage in STAGES if f"[{SEED} {stage}] resuming from step " in log} == STAGES - DATA
