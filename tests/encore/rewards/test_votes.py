"""The rewards of a majority's answer and of wrong answers: what they read, and how a group votes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.errors import UserError
from encore.rewards import votes
from encore.rewards.rules import build
from encore.worlds import make, sample

ANSWERS = st.none() | st.sampled_from("abc")
VOTES = st.lists(st.tuples(st.sampled_from("pq"), ANSWERS), max_size=12)


def said(answer: str | None) -> str:
    return "no answer" if answer is None else f"<answer>{answer}</answer>"


@given(VOTES)
def test_the_majority_is_what_no_other_answer_of_the_group_outnumbers(rows):
    def count(prompt: str, answer: str | None) -> int:
        return sum(row == (prompt, answer) for row in rows)

    expected = [
        float(answer is not None and all(count(prompt, answer) >= count(prompt, other) for other in "abc"))
        for prompt, answer in rows
    ]
    assert votes.majority([prompt for prompt, _ in rows], [answer for _, answer in rows]) == expected


@given(VOTES, st.randoms())
def test_the_order_of_a_rollout_does_not_matter(rows, rng: random.Random):
    shuffled = rng.sample(rows, len(rows))
    pairs = [dict(zip(some, votes.majority(*columns(some)), strict=True)) for some in (rows, shuffled)]
    assert pairs[0] == pairs[1]


def columns(rows):
    return [prompt for prompt, _ in rows], [answer for _, answer in rows]


def test_a_rollout_of_a_world_by_both_rewards_and_accuracy():
    world = make({"world": "chain"})
    first, second = sample(world, 2, 0, "test")
    wrong = str(int(first.answer) + 1)
    texts = [said(wrong), said(first.answer), f"<think>1</think>{said(wrong)}", said(None)] + [
        said(second.answer)
    ] * 4
    problems = [first] * 4 + [second] * 4
    batch = {
        "prompts": [f"<user>{p.question}" for p in problems],
        "completions": texts,
        "question": [p.question for p in problems],
        "answer": [p.answer for p in problems],
    }
    majority, incorrect, accuracy = build(["majority", "incorrect", "accuracy"], world)
    assert [majority.__name__, incorrect.__name__] == ["majority", "incorrect"]
    assert majority(**batch) == [1, 0, 1, 0] + [1] * 4
    assert incorrect(**batch) == [1, 0, 1, 0] + [0] * 4
    assert accuracy(**batch) == [0, 1, 0, 0] + [1] * 4


def test_of_a_data_set_the_boxes_vote_and_the_verifier_decides_what_is_wrong():
    majority, incorrect = build(["majority", "incorrect"], None)
    texts = [r"so \boxed{0.5}", r"so \boxed{3}", r"\boxed{3}", r"\boxed{4}", "3"]
    prompts = [[{"role": "user", "content": "half of one?"}]] * 5
    replies = [[{"role": "assistant", "content": each}] for each in texts]
    batch = {
        "prompts": prompts,
        "completions": replies,
        "question": ["half of one?"] * 5,
        "answer": [r"\frac12"] * 5,
    }
    assert majority(**batch) == [0, 1, 1, 0, 0]
    assert incorrect(**batch) == [0, 1, 1, 1, 0]


def test_the_beginning_of_a_completion_that_its_prompt_has_is_read_once():
    majority, incorrect = build(["majority", "incorrect"], make({"world": "chain"}))
    batch = {"prompts": ["p"] * 2, "completions": ["8</answer>", "9</answer>"], "prefill": ["<answer>"] * 2}
    batch |= {"question": ["3+5="] * 2, "answer": ["8"] * 2}
    assert majority(**batch) == [1, 1]
    assert incorrect(**batch) == [0, 1]


def test_a_world_says_itself_which_answer_a_reply_states():
    majority, incorrect = build(["majority", "incorrect"], make({"world": "preferences"}))
    batch = {"prompts": ["p"] * 3, "completions": ["It is 8. ", "The answer is 8. ", "It is 9. "]}
    batch |= {"question": ["What is 3+5?"] * 3, "answer": ["8"] * 3}
    assert majority(**batch) == [1, 1, 0]
    assert incorrect(**batch) == [0, 0, 1]


@pytest.mark.parametrize("name", ["majority", "incorrect"])
def test_programs_state_no_answer(name):
    with pytest.raises(UserError, match=rf"^rewards\.{name}: unknown reward; valid: [^\n]*$"):
        build([name], None, verifies="tests")
