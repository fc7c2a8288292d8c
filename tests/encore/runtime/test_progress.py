"""Progress lines: few, early, and right about the time left."""

import contextlib
import io
import subprocess
import sys

import pytest

from encore.runtime.progress import LogLine, Progress, clock_text, parse, rate_text


def run(steps: int, seconds_a_step: float, tokens_a_step: int, resumed: int = 0) -> list[str]:
    """The lines of a run whose clock the test sets."""
    now = [100.0]
    out = io.StringIO()
    progress = Progress("r1_zero/cpu/base-recipe/seed0/grpo", out, clock=lambda: now[0])
    progress.start(resumed, steps, tokens=resumed * tokens_a_step)
    for step in range(resumed + 1, steps + 1):
        now[0] += seconds_a_step
        metrics = {"reward": 0.41, "accuracy": 1 / 3, "completions/mean_length": 33.4, "loss": 0.1}
        progress.step(step, steps, metrics if step % 2 else {"loss": 0.2}, step * tokens_a_step)
    progress.end("done")
    return out.getvalue().splitlines()


def test_a_line():
    lines = run(60, 1.0, 9100)
    name = "[r1_zero/cpu/base-recipe/seed0 grpo]"
    assert lines[0] == f"{name} starting at step 0 of 60"
    assert lines[1] == f"{name} step 1/60 reward 0.41 accuracy 0.33 length 33 9.1k tok/s 0:59 left"
    assert lines[2].startswith(f"{name} step 6/60 ")
    assert lines[-1] == f"{name} done in 1:00"


def test_at_most_one_line_in_five_seconds():
    assert len(run(1000, 0.1, 10)) <= 2 + 1 + 100 / 5


def test_resumed_run_counts_its_own_steps():
    lines = run(60, 1.0, 500, resumed=30)
    assert lines[0].endswith("resuming from step 30 of 60")
    assert lines[1].endswith("step 31/60 reward 0.41 accuracy 0.33 length 33 500 tok/s 0:29 left")


def test_loss_without_reward():
    out = io.StringIO()
    progress = Progress("a/pretrain", out, every=0, clock=lambda: 0.0)
    progress.step(1, 2, {"loss": 1.234, "grad_norm": 2.0})
    assert out.getvalue() == "[a pretrain] step 1/2 loss 1.23 0:00 left\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (48, "0:48"), (725, "12:05"), (11220, "3:07:00"), (-1, "0:00")]
)
def test_clock_text(seconds, text):
    assert clock_text(seconds) == text


def test_rate_text():
    assert rate_text(870) == "870 tok/s"
    assert rate_text(9100) == "9.1k tok/s"


def test_what_a_line_says_is_what_is_read_of_it():
    first, second, *_, last = run(60, 1.0, 9100)
    assert parse(first) == LogLine("step", 0, 60)
    assert parse(second) == LogLine("step", 1, 60, "9.1k", "0:59", "reward 0.41 accuracy 0.33 length 33")
    assert parse(last) == LogLine()
    assert parse("an epoch is step 1/60 of it all") is None


LOGGED = """
from encore.runtime.progress import Progress
progress = Progress("r/cpu/a/seed0/grpo", every=0)
progress.say("on the console alone")
progress.start(0, 2)
progress.step(1, 2, {"reward": 1.0})
progress.warn("odd")
"""


@pytest.mark.parametrize("together", [False, True])
def test_the_log_of_a_job_has_the_lines_that_tell_how_far_it_is(tmp_path, together):
    """As the workflow starts it; a file that has both streams has each line once."""
    log = tmp_path / "train.log"
    with log.open("w") as stream:
        stdout = stream if together else subprocess.PIPE
        done = subprocess.run(
            [sys.executable, "-c", LOGGED], stdout=stdout, stderr=stream, check=True, text=True
        )
    lines = log.read_text().splitlines()
    texts = [line.removeprefix("[r/cpu/a/seed0 grpo] ").partition(" reward")[0] for line in lines]
    assert texts[-3:] == ["starting at step 0 of 2", "step 1/2", "warning: odd"]
    assert len(texts) == (4 if together else 3)
    if not together:
        assert done.stdout.splitlines()[1:] == lines


def test_a_full_disk_under_the_log_ends_no_job():
    progress = Progress("a/pretrain", io.StringIO())
    with open("/dev/full", "w") as full:
        progress.log = full
        progress.warn("odd")
        assert progress.stream.getvalue() == "[a pretrain] warning: odd\n"
        progress.log = None
        with contextlib.suppress(OSError):
            full.close()
