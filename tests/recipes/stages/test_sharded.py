"""FSDP2 on two processes: the weights are really spread, and come out as one process trains them."""

import json
from pathlib import Path
from shutil import copytree

import pytest
import stage_runs
import test_sft
from cpu_shards import shard_on_cpus
from test_several_processes import both, require_same, with_batch
from test_sft import ready as sft_ready  # noqa: F401

FSDP = ["--shard", "fsdp"]


SFT = stage_runs.command("sft", with_batch(test_sft.CONFIG), **test_sft.INPUTS)


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
    assert stage_runs.run("sft", SFT, one) == 0
    assert both("sft", SFT + FSDP, two, shard_on_cpus) == [0, 0], (two / "err.txt").read_text()
    require_spread(two)
    require_same(one / "checkpoints/sft", two / "checkpoints/sft", sft_ready / "checkpoints/pretrain")
