"""A disk that is truly full, results and checkpoints on it, while a stage trains."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import stage_runs
from stage_runs import GRPO

FILLER = Path("filler")
SIZE = 64  # MiB


@pytest.fixture
def disk(base: Path, tmp_path: Path) -> Iterator[Path]:
    """A small disk with a base model; what a stage prints goes elsewhere, as to a terminal."""
    if os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs the right to mount a disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}m", "tmpfs", folder]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a disk")
    try:
        shutil.copytree(base, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.txt"))
        (folder / "out.txt").symlink_to(tmp_path / "out.txt")
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def full_at(step: int, left: int) -> None:
    """Have another program fill the disk after so many steps, but for `left` KiB."""
    from encore.learning.resumable import Resumable

    plain = Resumable.training_step

    def fill(self, *args, **kwargs):
        if self.state.global_step == step and not FILLER.exists():
            with FILLER.open("wb", buffering=0) as stream:
                try:
                    while True:
                        stream.write(bytes(4096))
                except OSError:
                    os.truncate(FILLER, max(0, stream.tell() - left * 1024))
        return plain(self, *args, **kwargs)

    Resumable.training_step = fill


@pytest.mark.fault(
    "the disk is full",
    "all of it, logs as well, in training and while a checkpoint is saved",
    "one line; what is saved stays, no half is trusted; once there is room the same bits",
)
@pytest.mark.slow
def test_a_full_disk_costs_nothing_that_was_saved(disk: Path, trained: Path, tmp_path: Path):
    arguments = stage_runs.command("grpo", GRPO, policy="results/pretrain/metrics.json")
    for step, left, saved in ((4, 0, 3), (7, 200, 6)):
        before = len((tmp_path / "out.txt").read_text().splitlines()) if saved > 3 else 0
        assert stage_runs.run("grpo", arguments, disk, partial(full_at, step, left)) == 2
        said = (tmp_path / "out.txt").read_text().splitlines()[before:]
        (line,) = [line for line in said if "error:" in line]
        assert f"cannot save the checkpoint of step {saved + 3} in checkpoints/grpo" in line
        assert (
            f"last good checkpoint: checkpoints/grpo/checkpoint-{saved}; make room and run the same" in line
        )
        assert not (disk / "results/grpo/metrics.json").exists()
        assert [p.name for p in (disk / "checkpoints/grpo").glob("checkpoint-*")] == [f"checkpoint-{saved}"]
        assert "Traceback" not in (disk / "err.txt").read_text()
        (disk / FILLER).unlink()
    assert stage_runs.run("grpo", arguments, disk) == 0, (disk / "err.txt").read_text()
    assert "resuming from step 6" in (tmp_path / "out.txt").read_text()
    assert stage_runs.outputs(disk, "grpo") == stage_runs.outputs(trained, "grpo")
