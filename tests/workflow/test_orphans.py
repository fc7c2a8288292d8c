"""Jobs that a killed head process has left in Slurm. With a real one: test_slurm_grid."""

from pathlib import Path

import pytest

from encore.errors import UserError
from encore.workflow import orphans

HERE = Path("/data/run")


class Queue:
    """Stands for squeue and scancel: a job ends so many looks after it is told to."""

    def __init__(self, *rows: str, looks: int = 2):
        self.rows, self.looks, self.cancelled = list(rows), looks, []

    def __call__(self, command: list[str]) -> str:
        if command[0] == "scancel":
            self.cancelled += command[1:]
            return ""
        if self.cancelled:
            self.looks -= 1
        if self.looks <= 0:
            self.rows = [row for row in self.rows if row.split("|")[0] not in self.cancelled]
        return "\n".join(self.rows)


ROWS = (
    "7|/data/run|rule_train_wildcards_r_cpu_a",
    "8|/data/other|rule_train_wildcards_r_cpu_a",
    "9|/data/run|(null)",
    "12_3|/data/run|rule_evaluate|with a bar",
    "garbage",
    "11|/data/run|",
)


def test_those_of_this_folder_alone_are_found(monkeypatch):
    assert orphans.of_folder(HERE, Queue(*ROWS)) == ["7", "12_3"]
    monkeypatch.setenv("SLURM_JOB_ID", "7")  # the head itself may be a job
    assert orphans.of_folder(HERE, Queue(*ROWS)) == ["12_3"]


@pytest.mark.fault(
    "the head process was killed", "its jobs are still in Slurm", "ended first, by number; none is made twice"
)
def test_they_are_ended_and_waited_for(capsys):
    queue, slept = Queue(*ROWS), []
    orphans.end(HERE, queue, slept.append)
    assert queue.cancelled == ["7", "12_3"]
    assert slept
    says = "2 jobs of an earlier run still in Slurm (7, 12_3): ending, to go on from what was saved\n"
    assert capsys.readouterr().err == says


@pytest.mark.slow
def test_one_that_does_not_end_is_an_error(monkeypatch):
    monkeypatch.setattr(orphans, "PATIENCE", 0.05)
    with pytest.raises(UserError, match=r"not ended in 0 s; run scancel 7 12_3, then this again"):
        orphans.end(HERE, Queue(*ROWS, looks=10**9))


def test_where_there_is_none_or_no_slurm_nothing_is_said(monkeypatch, tmp_path, capsys):
    orphans.end(HERE, Queue("8|/data/other|rule_train"))
    monkeypatch.setenv("PATH", str(tmp_path))
    orphans.end(HERE)
    assert capsys.readouterr().err == ""
