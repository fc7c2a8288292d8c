"""No text makes a world raise, verify by accident, or read for long."""

import random
import shutil
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.worlds import WORLDS, make

sandboxed = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")
NAMES = [pytest.param(name, marks=sandboxed) if name == "functions" else name for name in WORLDS]
worlds = pytest.mark.parametrize("name", NAMES)


tokens = {name: st.lists(st.sampled_from(make({"world": name}).vocabulary), max_size=60) for name in WORLDS}


@worlds
@given(data=st.data())
@settings(max_examples=50)
def test_garbage_neither_raises_nor_verifies(name, data):
    world = make({"world": name})
    problem = world.problem(random.Random(data.draw(st.integers(0, 999))))
    text = data.draw(st.one_of(st.text(), tokens[name].map("".join)))
    assert all(isinstance(step, bool) for step in world.steps(problem, text))
    if "<answer>" not in text and name not in ("preferences", "refusals"):
        assert not world.verify(problem, text)
    world.verify(problem, f"<answer>{text}</answer>")


@worlds
@pytest.mark.parametrize(
    "unit",
    [
        "1+1=2,",
        "1+",
        "1",
        "(",
        "((1)+",
        "-",
        "*",
        ",",
        ".",
        "wait",
        "no",
        "0,1:0;",
        ":",
        ";",
        "1+1",
        "<think>",
    ],
)
def test_a_long_text_is_read_in_bounded_time(name, unit):
    world = make({"world": name})
    problem = world.problem(random.Random(0))
    text = unit * (300_000 // len(unit))
    start = time.perf_counter()
    assert not world.verify(problem, f"<think>{text}</think><answer>{text}</answer>")
    world.steps(problem, f"<think>{text}</think>")
    for reward in world.rewards.values():
        assert reward(problem, f"<answer>{text}</answer>") <= 0
    assert time.perf_counter() - start < 4
