"""A checkpoint is gone on from by as many processes as have saved it."""

from pathlib import Path

import pytest

from recipes.errors import UserError
from recipes.runtime import gpus
from recipes.trainers.resume import SHARDS, STATE, check_processes


@pytest.fixture
def of_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint that two processes have saved; two are there now."""
    for name in (STATE, "resume_1.pt"):
        (tmp_path / name).touch()
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_same_processes_go_on(of_two: Path):
    check_processes(of_two)


@pytest.mark.parametrize("now", ["1", "4"])
def test_another_number_is_refused(of_two: Path, monkeypatch: pytest.MonkeyPatch, now: str):
    monkeypatch.setenv("WORLD_SIZE", now)
    with pytest.raises(
        UserError, match=f"2 processes saved it, and {now} cannot go on from it; .* on 2 GPUs"
    ):
        check_processes(of_two)


def test_sharded_and_whole_weights_are_not_exchanged(of_two: Path, monkeypatch: pytest.MonkeyPatch):
    (of_two / SHARDS).mkdir()
    with pytest.raises(UserError, match=r"its stage was sharded by fsdp; set resources.shard as then"):
        check_processes(of_two)
    for name, value in gpus.FSDP.items():
        monkeypatch.setenv(name, value)
    check_processes(of_two)
    (of_two / SHARDS).rmdir()
    with pytest.raises(UserError, match="its stage was not sharded"):
        check_processes(of_two)
    (of_two / "global_step3").mkdir()
    with pytest.raises(UserError, match=r"its stage was sharded by zero3; set resources.shard as then"):
        check_processes(of_two)
    for name, value in gpus.ZERO3.items():
        monkeypatch.setenv(name, value)
    check_processes(of_two)
