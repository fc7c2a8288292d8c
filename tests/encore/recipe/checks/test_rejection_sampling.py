"""Thresholds of rejection sampling: by rewards that the task has, and such that some pass and some do not."""

import copy
import re

import pytest
from scored_stages import SAMPLE

from encore.errors import UserError
from encore.recipe.graph import Graph, Node

STAGE = SAMPLE | {"task": {"world": "bilingual"}}
HUB = {"hub": "org/name", "revision": "a" * 40, "split": "train", "question": "q", "answer": "a"}
PLACE = "stages.draw.keep"


@pytest.fixture
def drawing(folder):
    """Recipe `paper` with rejection sampling."""
    del folder.specs["paper"]["scales"]["paper"]
    folder.set("paper", "stages/draw", copy.deepcopy(STAGE))
    return folder


@pytest.mark.parametrize(
    ("task", "keep"),
    [
        ({"world": "bilingual"}, {"language_consistency": 1.0, "readability": 0.8, "format": 1}),
        ({"world": "bilingual"}, {}),
        ({"world": "sort"}, {"position": 0.5}),
        ({"world": "preferences"}, {"judge": -0.5, "gold": 1.2}),  # in standard deviations
        (HUB | {"verifier": "math"}, {"format": 1.0, "english": 0.9}),
    ],
)
def test_thresholds_of_the_tasks_own_rewards(drawing, task, keep):
    drawing.set("paper", "stages/draw/task", task)
    drawing.set("paper", "stages/draw/keep", keep)
    drawing.load()


@pytest.mark.parametrize(
    ("keep", "says"),
    [
        ({"readable": 0.8}, f'{PLACE}.readable: unknown reward; did you mean "readability"?'),
        ({"accuracy": 1.0}, f"{PLACE}.accuracy: unknown reward; "),
        (
            {"random": 1.0},
            f"{PLACE}.random: unknown reward; valid: english, format, language_consistency, readability",
        ),
        ({"readability": 1.2}, f"{PLACE}.readability: expected more than 0 and at most 1, got 1.2"),
        ({"readability": 80}, f"{PLACE}.readability: expected more than 0 and at most 1, got 80"),
        ({"readability": 0}, f"{PLACE}.readability: expected more than 0 and at most 1, got 0"),
        ({"readability": -0.5}, f"{PLACE}.readability: expected more than 0 and at most 1, got -0.5"),
        ({"readability": "0.8"}, f'{PLACE}.readability: expected a number, got the text "0.8"'),
        (0.8, f"{PLACE}: expected a mapping, got 0.8"),
    ],
)
def test_a_mistake_is_one_line(drawing, keep, says):
    drawing.set("paper", "stages/draw/keep", keep)
    with pytest.raises(UserError, match=re.escape(says)) as error:
        drawing.load()
    assert "\n" not in str(error.value)


def test_a_reward_of_another_world(drawing):
    drawing.set("paper", "stages/draw/task", {"world": "preferences"})
    drawing.set("paper", "stages/draw/keep", {"readability": 0.5})
    says = r"keep.readability: unknown reward; valid: english, format, gold, judge"
    with pytest.raises(UserError, match=says):
        drawing.load()


def test_thresholds_are_of_the_lineage_but_not_their_order(drawing):
    node = Node("paper", "cpu", "base-recipe", 0, "draw", "stage")
    lineages = []
    for keep in ({"readability": 0.8, "format": 1.0}, {"format": 1.0, "readability": 0.8}, {"format": 1.0}):
        drawing.set("paper", "stages/draw/keep", keep)
        lineages.append(Graph(drawing.load()).lineage(node))
    assert lineages[0] == lineages[1] != lineages[2]
