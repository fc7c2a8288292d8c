"""Only the error of a full disk is reported as one."""

import errno
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from encore.errors import UserError
from encore.runtime import files
from encore.runtime.files import saving


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        OSError(errno.EFBIG, "File too large"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
        RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598"),
    ],
)
def test_no_room(error: Exception, tmp_path: Path):
    refused = pytest.raises(UserError, match=r"cannot save it in .* MiB free there: .*; make room")
    with refused, saving("it", tmp_path):
        raise error


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(errno.EACCES, "Permission denied"),
        OSError(errno.EIO, "Input/output error"),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        ValueError("x"),
    ],
)
def test_another_mistake_stays_what_it_is(error: Exception, tmp_path: Path):
    with pytest.raises(type(error)) as raised, saving("it", tmp_path):
        raise error
    assert raised.value is error


@pytest.mark.parametrize("numbers", [1, 10**6])
def test_what_torch_says(numbers: int, tmp_path: Path):
    with pytest.raises(UserError, match="make room"), saving("it", tmp_path):
        torch.save(torch.zeros(numbers), "/dev/full")


def test_write_leaves_the_old_file_when_it_fails(tmp_path: Path):
    path = tmp_path / "x.json"
    files.write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": 1}


def noted(path: Path) -> set[int]:
    """Note 200 times, and return the lengths of the notes that were read in between."""
    lengths = set()
    for number in range(200):
        files.note(path, {"many": [number] * 1000})
        lengths.add(len(json.loads(path.read_text(encoding="utf-8"))["many"]))
    return lengths


def test_several_processes_may_note_at_once(tmp_path: Path):
    """With one name for what is half written, a process moved away the file of another one."""
    with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
        lengths = pool.map(noted, [tmp_path / "notes.json"] * 4)
    assert set.union(*lengths) == {1000}
    assert [file.name for file in tmp_path.iterdir()] == ["notes.json"]


def test_notes_that_cannot_be_written_are_no_error(tmp_path: Path):
    files.note(tmp_path / "missing" / "notes.json", {})
    assert not any(tmp_path.iterdir())
