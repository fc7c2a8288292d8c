"""What the files of a run tell while they grow, are cut, are replaced, vanish, or are not what they seem."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.watch import rollouts
from analysis.watch.curve import POINTS, Curve
from analysis.watch.growing import LONGEST, Growing
from analysis.watch.job_log import JobLog, seconds
from encore.runtime import curves
from encore.runtime.progress import LogLine, parse


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_lines_are_the_same_in_whatever_pieces_they_come(tmp_path_factory, data, cuts):
    path = tmp_path_factory.mktemp("growing") / "file"
    growing, lines = Growing(path), []
    data += b"\n"
    for end in [*sorted(cuts), len(data)]:
        path.write_bytes(data[:end])
        os.utime(path, ns=(end, end))
        gained = growing.gained()
        assert not (gained.anew and lines)
        lines += gained.lines
    whole = Growing(path).gained().lines
    # two ends of lines next to each other are one, unless a piece ends between them
    assert [line for line in lines if line] == [line for line in whole if line]


def test_what_was_read_is_not_read_again(tmp_path):
    path = tmp_path / "log"
    path.write_text("line\n" * 1000)
    growing = Growing(path)
    assert len(growing.gained().lines) == 1000
    for _ in range(5):
        assert growing.gained().lines == ()
    with path.open("a") as stream:
        stream.write("news\nhalf a li")
    assert growing.gained().lines == ("news",)
    with path.open("a") as stream:
        stream.write("ne\n")
    assert growing.gained().lines == ("half a line",)
    assert growing.bytes_read == path.stat().st_size


@pytest.mark.parametrize("text", ["b\n", "other\nlines\n", "b\n" * 900], ids=["shorter", "equal", "longer"])
def test_a_file_that_was_replaced_is_read_anew(tmp_path, text):
    path = tmp_path / "log"
    path.write_text("a\n" * 6)
    growing = Growing(path)
    growing.gained()
    path.write_text(text)
    os.utime(path, (0, 0))
    gained = growing.gained()
    assert gained.anew
    assert gained.lines == tuple(text.splitlines())


def test_what_is_no_file_to_read_gives_nothing(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("pipe", "loop", "gone", "."):
        assert Growing(tmp_path / name).gained().lines == ()
        assert rollouts.last(tmp_path / name) is None


def test_a_line_without_an_end_is_not_kept_for_ever(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * 4 * LONGEST + b"y")
    growing = Growing(path)
    growing.gained()
    with path.open("ab") as stream:
        stream.write(b"\n")
    assert growing.gained().lines == ("x" * (LONGEST - 1) + "y",)


# -- the log -------------------------------------------------------------------------------------------------


@given(st.text(max_size=200))
def test_no_line_is_too_odd_for_the_log(text):
    for line in (text, f"[a/b c] {text}", f"[a/b c] step 1/2 {text}", f"[a/b c] warning: {text}"):
        parse(line)
    seconds(text)


def written(path: Path, text: str) -> JobLog:
    path.write_text(text)
    log = JobLog(path)
    log.update()
    return log


def test_a_log_tells_how_far_the_job_is_beside_whatever_else_it_holds(tmp_path):
    bar = "Map:   0%|   | 0/9 [00:00<?]\rMap: 100%|###| 9/9 [00:01<00:00]"
    step = "[r/cpu/a/seed0 grpo] step 6/60 reward 0.41 9.1k tok/s 0:54 left"
    log = written(tmp_path / "log", f"{bar}{step}\na warning of torch\n[r/cpu/a/seed0 grpo] step 7/6")
    assert log.progress == LogLine("step", 6, 60, "9.1k", "0:54", "reward 0.41")
    assert log.seconds_a_step == 1.0
    assert not log.error


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("error: a.yaml: no such key\n", "a.yaml: no such key"),
        ("Traceback (most recent call last):\n  File\n    x\nValueError: bad\n", "ValueError: bad"),
        ("Traceback (most recent call last):\nx: y\n[r/s a] step 2/4\n", ""),  # it was caught, and goes on
        ("  error: of a library\n", ""),
        ("Map: 50%|#  | 4/9 [00:01<00:01, 4.00 examples/s]error: no room\n", "no room"),
    ],
)
def test_what_has_ended_a_job_is_told(tmp_path, text, error):
    assert written(tmp_path / "log", text).error == error


def test_a_job_that_is_started_again_has_not_failed(tmp_path):
    log = written(tmp_path / "log", "[r/s a] warning: x\n[r/s a] step 9/10\nerror: no room\n")
    assert (log.error, log.warnings) == ("no room", ["x"])
    log.file.path.write_text("[r/s a] loading\n")
    log.update()
    assert (log.error, log.warnings, log.progress) == ("", [], LogLine())


# -- the curve -----------------------------------------------------------------------------------------------


def test_a_curve_grows_and_begins_again_at_a_checkpoint(tmp_path):
    path = tmp_path / "curve.csv"
    rows = [(step, "reward", step / 7) for step in range(1, 21)]
    path.write_text(curves.text(rows))
    curve = Curve(path)
    curve.update()
    assert curve.line("reward").values == [value for _, _, value in rows]
    path.write_text(curves.text([*rows[:9], (10, "reward", 0.5)]))
    curve.update()
    assert curve.step == 10
    assert curve.line("reward").values[-2:] == [9 / 7, 0.5]


def test_a_long_curve_has_as_many_points_as_a_chart_and_its_last(tmp_path):
    path = tmp_path / "curve.csv"
    path.write_text(curves.text([(step, "kl", float(step)) for step in range(1, 10_000)]))
    curve = Curve(path)
    curve.update()
    assert len(curve.line("kl").steps) <= POINTS
    assert curve.line("kl").steps[-1] == 9_999


def test_rows_that_are_none_are_left_out(tmp_path):
    path = tmp_path / "curve.csv"
    odd = [
        f"{'9' * 5000},kl,1",
        "1,kl,nan",
        "2,kl,1e999",
        "-3,kl,1",
        "4,kl",
        "\x00,kl,1",
        "\u0665,kl,1",
        '5,"kl,1',
    ]
    path.write_text("\n".join([*odd, "6,kl,2", "7,other,3", ""]), encoding="utf-8")
    curve = Curve(path)
    curve.update()
    assert tuple(curve.line("kl")) == ([6], [2.0])
