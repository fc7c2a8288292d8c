"""What is added to the log of a job that could not say why it has ended."""

import signal
import subprocess
import sys

import pytest

from encore.workflow import after_job


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
                       f" || {sys.executable} -I -S {after_job.__file__} ended $? {log}"],
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
    assert after_job.main(["ended", str(status), str(log)]) == status
    assert log.read_text() == "error: no such file\n"


def test_a_log_that_cannot_be_written_is_told(tmp_path, capsys):
    log = tmp_path / "no/train.log"
    assert after_job.main(["ended", "1", str(log)]) == 1
    assert capsys.readouterr().err == f"error: {log}: No such file or directory\n"
    assert after_job.main(["ended", "137", str(log)]) == 137
    assert "SIGKILL" in capsys.readouterr().err


@pytest.mark.fault(
    "kill -9 of a job's own process, as of the kernel that is out of memory",
    "a stage of a run",
    "one line tells that it was killed, the likely cause and the log; the same command goes on",
)
@pytest.mark.slow
def test_a_stage_that_the_kernel_kills_is_told_in_its_log(project):
    project.edit("demo", "{dial: 5}", "{dial: 14}")
    done = project.snakemake("results/demo/cpu/hot/seed0/rl/metrics.json")
    assert done.returncode == 1
    shown = [line.strip() for line in done.stderr.splitlines()]
    place = shown.index("results/demo/cpu/hot/seed0/rl/train.log, its end:")
    (told,) = [line for line in shown[place:] if line.startswith("error: ")]
    assert told.startswith(
        "error: ended by SIGKILL: killed from outside: most likely by the kernel for want of"
    )
    assert "--config" not in done.stderr  # as a shell would tell what was killed
    assert not (project.folder / "results/demo/cpu/hot/seed0/rl/metrics.json").exists()
