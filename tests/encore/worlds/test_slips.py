"""Lost carries: what documents plant of them, and what the score reads of any completion."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.worlds import Problem, corpus, make, sample
from encore.worlds.chain import Chain
from encore.worlds.slips import carries, lost
from encore.worlds.sums import careless, left_to_right, losing, operands_of, passes_ten

SUM = Problem("8+7+4+5=", "24", 4)
WORLD = make({"world": "chain", "terms": [3, 6]})


@pytest.mark.parametrize(
    ("completion", "share"),
    [
        ("<think>8+7=15,15+4=19,19+5=24</think><answer>24</answer>", 0.0),
        (
            "<think>8+7=14,14+4=18,18+5=23</think><answer>23</answer>",
            0.5,
        ),  # the last sum follows from the first slip
        ("<think>8+7=14,14+4=18,18+5=22</think><answer>22</answer>", 1.0),
        ("<think>8+7=16,16+4=20</think>", 0.0),  # a slip of another kind
        ("<think>14+4=17</think>", 0.0),  # no ten is passed
        ("8+7=14", 1.0),
        ("<answer>24</answer>", 0.0),
        ("<think>8+7=,=14,+7=14", 0.0),
        ("", 0.0),
    ],
)
def test_the_share_of_lost_carries(completion, share):
    assert lost(SUM, completion) == share
    assert carries(SUM, completion) >= share
    assert (Chain.rewards["lost"], Chain.rewards["carries"]) == (lost, carries)


def test_a_step_past_a_ten_carries():
    assert carries(SUM, "<think>8+7=15</think>") == carries(SUM, "19+5=2") == 1
    assert carries(SUM, "<think>14+4=17</think>") == carries(SUM, "<answer>15</answer>") == 0


@given(st.text(alphabet="0123456789+-=,.wait<>think/", max_size=80))
def test_any_completion_has_a_share(completion):
    assert 0.0 <= lost(SUM, completion) <= 1.0


@given(st.lists(st.integers(0, 99), min_size=2, max_size=3).map(tuple), st.randoms())
def test_a_carry_is_lost_always_or_never_at_the_ends_of_the_dial(operands, rng: random.Random):
    carried = sum(operand % 10 for operand in operands) > 9
    assert passes_ten(operands) == carried
    assert losing(1.0, sum, rng)(operands) == sum(operands) - carried
    assert losing(0.0, sum, rng)(operands) == sum(operands)
    assert not passes_ten((-8, *operands))


def test_a_corpus_loses_as_many_carries_as_its_dial_says():
    def share(dial: float) -> float:
        pairs = corpus(WORLD, {"chain": {"weight": 1, "lost": dial}}, 2000, 0, "{question}")
        steps = [step.split("=") for _, text in pairs for step in text[7:].partition("<")[0].split(",")]
        passed = [(operands_of(left), int(right)) for left, right in steps if passes_ten(operands_of(left))]
        return sum(right < sum(operands) for operands, right in passed) / len(passed)

    assert [share(dial) for dial in (0.0, 1.0)] == [0.0, 1.0]
    assert share(0.35) == pytest.approx(0.35, abs=0.03)


def test_without_the_dial_no_random_number_is_drawn():
    """So the corpora of other recipes are as they were."""
    problem, one, two = sample(WORLD, 1, 0, "train")[0], random.Random(3), random.Random(3)
    for _ in range(20):
        steps, _ = left_to_right(operands_of(problem.question), careless(0.3, two))
        assert WORLD.document(problem, "chain", one, error=0.3).startswith(f"<think>{','.join(steps)}<")
