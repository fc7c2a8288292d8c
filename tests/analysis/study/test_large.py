"""Large studies, read by several processes, get the same numbers and mistakes, in bounded time."""

import csv
import os
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pandas as pd
import pytest
import yaml

from analysis.study import document, formats, numbers, runs
from encore.errors import UserError

ROOT = Path(__file__).parents[3]
MEMORY = 2048  # MiB that 1,000 runs may take, with a process for each of two cores
TEST = {"metric": "last/x", "of": "a/train", "against": "b/train", "direction": "higher", "margin": 0.1}
STUDY = {
    "title": "A or B",
    "runs": {"train": {"files": ["{arm}-{seed}.csv"]}},
    "claims": {"higher": {"says": "a ends higher.", "test": TEST}},
}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study of eight runs that counts as large."""
    monkeypatch.setattr(runs, "LARGE", 0)
    for arm in "ab":
        for seed in range(1, 5):
            rows = pd.DataFrame({"step": [1, 2], "x": [0.0, seed]})
            rows.to_csv(tmp_path / f"{arm}-{seed}.csv", index=False)
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    return tmp_path / "study.yaml"


@pytest.mark.slow
def test_several_processes_read_the_same(study, monkeypatch):
    collected = numbers.collect(document.load(study), study.parent)
    monkeypatch.setattr(runs, "LARGE", 1 << 30)
    alone = numbers.collect(document.load(study), study.parent)
    pd.testing.assert_frame_equal(collected.table, alone.table)
    assert len(alone.table) == 8


@pytest.mark.slow
def test_a_mistake_in_another_process_is_the_same_line(study):
    (study.parent / "b-2.csv").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match=r"b-2\.csv: empty"):
        numbers.collect(document.load(study), study.parent)


def test_a_process_that_ends_is_told_in_one_line(study, monkeypatch):
    class Ending:
        """A pool whose processes the kernel has killed."""

        def __init__(self, **_): ...
        def __enter__(self):
            return self

        def __exit__(self, *_): ...
        def map(self, *_, **__):
            raise BrokenProcessPool

    monkeypatch.setattr(runs, "ProcessPoolExecutor", Ending)
    with pytest.raises(UserError, match="a process that read them ended") as error:
        numbers.collect(document.load(study), study.parent)
    assert len(error.value.lines) == 1


def test_lines_of_json_are_the_same_alone_and_together(tmp_path, monkeypatch):
    """Of lines that are no objects by themselves the first is named, though together they would be some."""
    path = tmp_path / "log.jsonl"
    separator = '{"step": 1, "x": 0.5, "note": "a\u2028b"}\n\n{"step": 2, "x": 1}\r\n'
    path.write_text(separator, encoding="utf-8", newline="")
    rows = formats.read_log(path, None)
    assert (rows.step.tolist(), rows.value.tolist()) == ([1, 2], [0.5, 1])
    for broken in ('{"step": 1\n"x": 2}', '{"step": 1}\n[2]', '{"step": 1}, {"step": 2}\n', '{"step": 1}\n{'):
        path.write_text(broken, encoding="utf-8")
        with pytest.raises(UserError, match=r"line [12]: expected a JSON object"):
            formats.read_log(path, None)


@pytest.mark.slow
def test_a_hundred_runs_of_ten_thousand_steps_take_seconds(tmp_path):
    """Processor time: a tenth of what 1,000 runs may take on two cores in 30 s.

    Imports and the page, 6 s, do not grow with the runs.
    """
    command = [sys.executable, "tests/benchmarks/judge_speed.py", "--out", str(tmp_path / "speed.csv")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, "--runs", "100"], check=True, cwd=ROOT, env=environment)
    with (tmp_path / "speed.csv").open(encoding="utf-8") as file:
        measured = {(row["form"], row["metric"]): float(row["value"]) for row in csv.DictReader(file)}
    for form in ("csv", "jsonl"):
        assert measured[form, "cpu_s"] < 20
        assert measured[form, "memory_mib"] < MEMORY / 3
