"""A checkpoint is gone on from as it was saved, and by as many processes as have saved it."""

from pathlib import Path

import hand_made
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from encore.errors import UserError
from encore.learning import digests
from encore.learning.resumable import SHARDS, STATE, Clock, check_processes, discard_damaged, last_checkpoint
from encore.runtime import gpus


@pytest.fixture
def of_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint that two processes have saved; two are there now."""
    for name in (STATE, "resume_1.pt"):
        (tmp_path / name).touch()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("ACCELERATE_USE_FSDP", raising=False)
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


CONTENT = {"model.safetensors": b"weights" * 9, f"{SHARDS}/__1_0.distcp": b"a piece", "resume.pt": b"state"}


def checkpoint(folder: Path, step: int, digested: bool = True) -> Path:
    """A checkpoint, sharded, as a stage leaves it; `digested`: as a version with digests does."""
    made = folder / f"checkpoint-{step}"
    for name, content in CONTENT.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(content)
    if digested:
        digests.write(made, STATE)
    return made


@given(
    name=st.sampled_from([*CONTENT, digests.DIGESTS]), place=st.integers(0, 9999), change=st.integers(1, 255)
)
def test_any_byte_of_any_file_is_noticed(name: str, place: int, change: int, tmp_path_factory):
    made = checkpoint(tmp_path_factory.mktemp("run"), 6)
    assert digests.damaged(made, STATE) is None
    data = bytearray((made / name).read_bytes())
    data[place % len(data)] ^= change
    (made / name).write_bytes(data)
    assert digests.damaged(made, STATE) is not None


@pytest.mark.parametrize("end", [b"\r", b"\x0b", b"\x1c"])
def test_another_end_of_a_line_is_noticed(end: bytes, tmp_path: Path):
    """Python reads some of these bytes as the end of a line too."""
    made = checkpoint(tmp_path, 6)
    text = (made / digests.DIGESTS).read_bytes()
    (made / digests.DIGESTS).write_bytes(text.replace(b"\n", end, 1))
    assert digests.damaged(made, STATE) == digests.DIGESTS


@given(name=st.sampled_from([*CONTENT, digests.DIGESTS]), left=st.integers(0, 9999))
def test_any_file_that_is_shorter_is_noticed(name: str, left: int, tmp_path_factory):
    made = checkpoint(tmp_path_factory.mktemp("run"), 6)
    data = (made / name).read_bytes()
    (made / name).write_bytes(data[: left % len(data)])
    assert digests.damaged(made, STATE) in (name, digests.DIGESTS)


def test_damaged_ones_are_removed_until_one_is_whole(tmp_path: Path):
    first, second, third = (checkpoint(tmp_path, step) for step in (3, 6, 12))
    (second / "model.safetensors").write_bytes(b"other")
    (third / f"{SHARDS}/__1_0.distcp").unlink()
    lines: list[str] = []
    discard_damaged(tmp_path, lines.append)
    assert lines == [
        f"warning: {third}: pytorch_model_fsdp_0/__1_0.distcp is damaged; going on from checkpoint-6",
        f"warning: {second}: model.safetensors is damaged; going on from checkpoint-3",
    ]
    assert last_checkpoint(tmp_path) == first
    (first / STATE).write_bytes(b"other")
    discard_damaged(tmp_path, lines.append)
    assert lines[-1] == f"warning: {first}: resume.pt is damaged; training starts anew"
    assert last_checkpoint(tmp_path) is None


def test_a_checkpoint_of_an_earlier_version_is_gone_on_from(tmp_path: Path):
    made = checkpoint(tmp_path, 6, digested=False)
    discard_damaged(tmp_path, refused)
    assert last_checkpoint(tmp_path) == made


def refused(line: str) -> None:
    raise AssertionError(line)


def test_a_checkpoint_of_another_version_is_one_line(tmp_path: Path):
    (tmp_path / "checkpoint-3").mkdir()
    torch.save({"summed_loss": 0.0}, tmp_path / "checkpoint-3" / STATE)
    with pytest.raises(UserError, match="checkpoint-3: another version of Encore saved it; remove it"):
        hand_made.trainer(tmp_path / "run").restore(tmp_path / "checkpoint-3")


def test_so_is_a_checkpoint_whose_rollouts_lack_a_count(tmp_path: Path):
    (tmp_path / "checkpoint-3").mkdir()
    trainer = hand_made.trainer(tmp_path / "run")
    trainer._tr_loss, trainer._globalstep_last_logged = torch.tensor(0.0), 0
    states = {name: part.state() for name, part in trainer.held().items()}
    del states["rollouts"]["sampled"]
    torch.save(states, tmp_path / "checkpoint-3" / STATE)
    with pytest.raises(UserError, match="checkpoint-3: another version of Encore saved it; remove it"):
        trainer.restore(tmp_path / "checkpoint-3")


def test_a_checkpoint_without_cpu_seconds_is_gone_on_from():
    clock = Clock()
    clock.restore((60.0, 1))
    assert (clock.earlier_s, clock.earlier_cpu_s, clock.resumed) == (60.0, 0.0, 2)
