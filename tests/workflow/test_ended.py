"""What is added to the log of a job that could not say why it has ended."""

import signal
import subprocess
import sys

import pytest

from recipes.workflow import ended


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (
            signal.SIGKILL,
            "ended by SIGKILL: killed from outside: most likely by the kernel for want of memory",
        ),
        (signal.SIGSEGV, "ended by SIGSEGV: a crash in compiled code"),
        (signal.SIGXCPU, "ended by SIGXCPU: over a limit of processor time"),
    ],
)
@pytest.mark.parametrize("before", ["step 3", "step 3\n", ""])
def test_a_job_that_was_killed(tmp_path, number, says, before):
    log = tmp_path / "train.log"
    log.write_text(before)
    done = subprocess.run(
        ["bash", "-c", f"{{ sh -c 'kill -{number:d} $$' 2>> {log}; }} 2> /dev/null"
                       f" || {sys.executable} -I -S {ended.__file__} $? {log}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")
    *first, line = log.read_text().splitlines()
    assert first == before.splitlines()
    assert line.startswith(f"error: {says}")


@pytest.mark.parametrize("status", [1, 2, 128, 130, 143, 255])
def test_a_job_that_has_said_it_itself(tmp_path, status):
    log = tmp_path / "train.log"
    log.write_text("error: no such file\n")
    assert ended.main([str(status), str(log)]) == status
    assert log.read_text() == "error: no such file\n"


def test_a_log_that_cannot_be_written_is_told(tmp_path, capsys):
    log = tmp_path / "no/train.log"
    assert ended.main(["1", str(log)]) == 1
    assert capsys.readouterr().err == f"error: {log}: No such file or directory\n"
    assert ended.main(["137", str(log)]) == 137
    assert "SIGKILL" in capsys.readouterr().err
