"""Where the steps of a completion end."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.worlds import WORLDS, make

FOREIGN = (*".,;:=<>+- \n", "...", "wait", "\ud800")  # what only a tokenizer of another model can write
TOKENS = {
    name: st.lists(st.sampled_from([*make({"world": name}).vocabulary, *FOREIGN]), max_size=60)
    for name in WORLDS
}


@pytest.mark.parametrize(
    ("name", "completion", "steps"),
    [
        ("chain", "<think>3+5=8,8+7=15</think><answer>15</answer>", ["3+5=8", "8+7=15"]),
        ("chain", "<think>3+5=8..,,8+7=1.5.wait.8+7=15</think>", ["3+5=8", "8+7=1.5", "8+7=15"]),
        ("chain", "3+5=8,8+7", ["3+5=8", "8+7"]),
        ("chain", "<answer>15</answer>", []),
        ("chain", "9=9<think>...</think>", []),
        (
            "countdown",
            "<think>3*5=15,15+7=22no3+5=8,8*7=56yes</think>",
            ["3*5=15", "15+7=22", "3+5=8", "8*7=56"],
        ),
        ("sort", "<think>5,3:3;5:5.</think>", ["5,3:3", "5:5"]),
    ],
)
def test_a_step_ends_with_its_last_character(name, completion, steps):
    world = make({"world": name})
    problem = world.problem(random.Random(0))
    ends = world.step_ends(problem, completion)
    assert [completion[:end].endswith(step) for end, step in zip(ends, steps, strict=True)] == [True] * len(
        steps
    )
    assert ends == sorted(set(ends))


@pytest.mark.parametrize("name", WORLDS)
@given(data=st.data())
@settings(max_examples=80)
def test_ends_are_parallel_to_the_steps_of_any_text(name, data):
    world = make({"world": name})
    rng = random.Random(data.draw(st.integers(0, 999)))
    problem = world.problem(rng)
    documents = st.sampled_from(sorted(world.kinds)).map(lambda kind: world.document(problem, kind, rng))
    text = data.draw(st.one_of(documents, TOKENS[name].map("".join), st.text()))
    steps, ends = world.steps(problem, text), world.step_ends(problem, text)
    assert len(ends) == len(steps)
    assert all(0 < end <= len(text) for end in ends)
    assert all(low < high for low, high in pairwise(ends))
    # what is read up to the end of a step is that step and those before it
    for count, end in enumerate(ends, 1):
        assert world.steps(problem, text[:end]) == steps[:count]
        assert world.step_ends(problem, text[:end]) == ends[:count]
        assert len(world.steps(problem, text[: end - 1])) in (count, count - 1)
