"""World sort: its steps and the lecture's partial rewards."""

import pytest

from encore.worlds import Problem, make
from encore.worlds.sort import inclusion_ordering, position

WORLD = make({"world": "sort"})
PROBLEM = Problem("5,3,9=", "3,5,9", 3)


@pytest.mark.parametrize(
    ("scratch", "expected"),
    [
        ("5,3,9:3;5,9:5;9:9", [True] * 3),
        ("5,3,9:5;3,9:3;9:9", [False, True, True]),
        ("5,3,9:3;9,5:5", [True, False]),
        ("5,3,9:3;5,3,9:3", [True, False]),
        ("5,3,9:3;5,9:5;9:9;9:9", [True, True, True, False]),
        ("5,3,9", [False]),
        (":", [False]),
        ("5,3,9:٣", [False]),
    ],
)
def test_steps(scratch, expected):
    assert WORLD.steps(PROBLEM, f"<think>{scratch}</think>") == expected


@pytest.mark.parametrize("wrong", ["5,3,9", "3,5", "3,5,9,9", "3, 5, 9", "3,5,9,", "3;5;9", "03,5,9", ""])
def test_only_the_sorted_list_as_one_writes_it_is_right(wrong):
    assert not WORLD.verify(PROBLEM, f"<answer>{wrong}</answer>")


@pytest.mark.parametrize(
    ("response", "places", "points"),  # the lecture's examples, for the prompt 3,1,0,2
    [
        ("0,1,2,3", 4, 7),
        ("7,2,2,5", 1, 3),
        ("0,3,1,2", 1, 6),
        ("0,0,0,0", 1, 4),
        ("0,1,2", 0, 0),
        ("a,b", 0, 0),
    ],
)
def test_partial_rewards_are_the_lectures_as_shares(response, places, points):
    problem = Problem("3,1,0,2=", "0,1,2,3", 4)
    completion = f"<answer>{response}</answer>"
    assert position(problem, completion) == places / 4
    assert inclusion_ordering(problem, completion) == points / 7
