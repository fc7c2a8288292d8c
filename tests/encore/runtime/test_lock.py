"""The lock of a folder: who holds it, and what is said where there can be none."""

import os
import subprocess
import sys

import pytest

from encore.errors import UserError
from encore.runtime.lock import only_one


def test_a_second_process_is_told_who_holds_the_lock_and_gets_it_when_that_one_ends(tmp_path):
    path = tmp_path / "folder/lock"
    script = (
        "import pathlib, sys\nfrom encore.runtime.lock import only_one\n"
        "file = only_one(pathlib.Path(sys.argv[1]), print)\nprint('held', flush=True)\ninput()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout.readline() == "held\n"

    def refuse(holder):
        raise UserError(f"process {holder} holds it")

    with pytest.raises(UserError, match=f"process {other.pid} holds it"):
        only_one(path, refuse)
    other.communicate("\n")
    with only_one(path, refuse):
        assert path.read_text() == str(os.getpid())


@pytest.mark.fault(
    "a folder where a lock should be",
    "the start of a stage, of a preflight or of the workflow",
    "one line that names it",
)
def test_a_folder_in_the_place_of_a_lock_is_told_in_one_line(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(
        UserError, match=f"^{tmp_path}/lock: expected the file of a lock, found a folder; .*$"
    ):
        only_one(tmp_path / "lock", print)


def test_a_file_in_the_place_of_the_locks_folder_is_told_in_one_line(tmp_path):
    (tmp_path / "folder").write_text("")
    with pytest.raises(UserError, match=f"^{tmp_path}/folder/lock: the file of the lock cannot be opened: "):
        only_one(tmp_path / "folder/lock", print)
