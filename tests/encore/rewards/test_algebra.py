"""Answers that algebra cannot finish: one budget for a rollout, and pairs that are remembered."""

import json
import os
import signal
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.rewards import algebra
from encore.rewards.algebra import Algebra, Reply
from encore.rewards.math_answers import Comparer


@pytest.mark.fault(
    "a verifier hangs",
    "comparing two answers",
    "ended after so much CPU time, logged, counted as not equal; the next one works",
)
@pytest.mark.slow
def test_a_comparison_without_end_is_cut_and_the_next_one_works(caplog):
    equal = Comparer(limit=0.5)
    assert equal("\\sqrt{12}", "2\\sqrt{3}")
    assert not equal("8", "(10^{9})!")
    assert equal.unfinished == 1
    assert "not compared within 0.5 s of CPU" in caplog.text
    assert equal("\\sqrt{12}", "2\\sqrt{3}")
    equal.algebra.server.kill()  # of something else than a comparison: no verdict depends on it
    equal.algebra.server.wait()
    assert equal("2\\sqrt{3}", "\\sqrt{12}")
    assert equal.unfinished == 1
    equal.close()
    assert equal.algebra.server is None


@pytest.mark.slow
def test_the_limit_is_of_cpu_time():
    """A worker that is stopped for longer than its limit still gives the right verdict."""
    short = Comparer(limit=0.3)
    assert short("\\sqrt{8}", "2\\sqrt{2}")
    group = short.algebra.server.pid  # of the server and its worker
    os.killpg(group, signal.SIGSTOP)
    threading.Timer(1.0, os.killpg, (group, signal.SIGCONT)).start()
    assert short("\\sqrt{12}", "2\\sqrt{3}")
    assert short.unfinished == 0
    short.close()


@pytest.mark.slow
def test_a_pair_that_was_not_finished_is_not_begun_again():
    equal = Comparer(limit=1.0)
    assert not equal("8", "1e999999999")
    start = time.monotonic()
    assert not equal("8", "1e999999999")
    assert time.monotonic() - start < 0.5
    assert equal.unfinished == 2
    equal.close()


def test_a_pair_is_begun_again_with_more_time_alone_and_the_oldest_is_forgotten(monkeypatch):
    """The server is a stand-in that finishes within 2 s; `asked` is what it was asked."""
    asked = []

    def exchange(self, request):
        asked.append(request)
        seconds = json.loads(request)[-1]
        return json.dumps(["equal" if seconds >= 2 else "unfinished", 0.1]).encode()

    monkeypatch.setattr(Algebra, "_exchange", exchange)
    monkeypatch.setattr(algebra, "REMEMBERED", 2)
    compare = Algebra()
    outcomes = [compare("a", "b", seconds).outcome for seconds in (1.0, 1.0, 0.5, 2.0, 0.5, 2.0)]
    assert outcomes == ["unfinished"] * 3 + ["equal"] * 3
    assert len(asked) == 2
    for other in "cda":
        compare("a", other, 2.0)
    assert len(compare.replies) == 2
    compare("a", "b", 2.0)
    assert len(asked) == 6


class Costly:
    """In the place of `Algebra`: a pair `8x`, `(cost)x` is equal, and takes so many seconds."""

    def __init__(self) -> None:
        self.spent = 0.0  # over pairs that were not finished

    def __call__(self, one: str, other: str, seconds: float) -> Reply:
        cost = float(other.strip("()x"))
        if cost <= seconds:
            return Reply("equal", cost)
        self.spent += seconds
        return Reply("unfinished", seconds)


COST = st.floats(0.001, 0.1) | st.floats(0.1, 4.0) | st.floats(100.0, 200.0)


@given(st.lists(COST, max_size=300, unique=True), st.randoms())
def test_a_rollout_has_one_budget_and_no_answer_takes_the_time_of_another(costs, random):
    def verdicts(costs):
        equal = Comparer(budget=60.0)
        equal.algebra = Costly()
        found = equal.verdicts([("8x", f"({cost})x") for cost in costs])
        assert equal.algebra.spent <= 60.0 + 1e-6
        return dict(zip(costs, found, strict=True))

    before = verdicts(costs)
    assert all(before[cost] == "right" for cost in costs if cost <= 0.1)
    assert all(before[cost] == "unreadable" for cost in costs if cost >= 100.0)
    if len(costs) <= 10:  # nobody is short of time
        assert all(before[cost] == "right" for cost in costs if cost <= 4.0)
    random.shuffle(costs)
    assert verdicts(costs) == before


@pytest.mark.slow
def test_answers_without_end_take_no_time_from_right_ones():
    equal = Comparer(limit=0.5, budget=2.0)
    bombs = [f"(10^{{9}}+{i})!" for i in range(8)]
    pairs = [pair for bomb in bombs for pair in (("8", bomb), ("\\sqrt{12}", "2\\sqrt{3}"))]
    assert equal.verdicts(pairs) == ["unreadable", "right"] * 8
    assert equal.unfinished == 8
    equal.close()
