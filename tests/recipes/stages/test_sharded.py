"""FSDP2 on two processes: the weights are really spread, and come out as one process trains them."""

import json
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import stage_runs
import test_sft
import torch
from cpu_shards import shard_on_cpus
from stage_runs import at_training_step
from test_several_processes import both, weights
from test_sft import ready as sft_ready  # noqa: F401

FSDP = ["--shard", "fsdp"]


def sft(accumulated: int) -> list[str]:
    config = test_sft.CONFIG
    args = config["args"] | {"gradient_accumulation_steps": accumulated}
    return stage_runs.command("sft", config | {"args": args}, **test_sft.INPUTS)


def require_spread(folder: Path) -> None:
    """Each of two processes held about half of each weight, and both together all of it."""
    notes = [json.loads((folder / f"shards_{rank}.json").read_text()) for rank in (0, 1)]
    assert notes[0].keys() == notes[1].keys()
    for name, (own, all_of_it) in notes[0].items():
        assert own + notes[1][name][0] == all_of_it, name
        assert 0.4 * all_of_it <= own <= 0.6 * all_of_it, name


@pytest.mark.slow
def test_sharded_sft_learns_what_one_process_learns(sft_ready: Path, tmp_path: Path):  # noqa: F811
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        copytree(sft_ready, folder)
    assert stage_runs.run("sft", sft(2), one) == 0
    assert both("sft", sft(1) + FSDP, two, shard_on_cpus) == [0, 0], (two / "err.txt").read_text()
    require_spread(two)
    expected, got = (weights(folder / "checkpoints/sft") for folder in (one, two))
    assert expected.keys() == got.keys()
    for name, weight in expected.items():
        assert torch.allclose(weight, got[name], atol=1e-4), name
