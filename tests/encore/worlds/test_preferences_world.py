"""World preferences: every part of the gold score, what the judge gets wrong, and the kinds of reply."""

import random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.errors import UserError
from encore.rewards import rules
from encore.worlds import Problem, make, sample, tokenizer
from encore.worlds.gold import (
    COURTESY,
    EXCESS,
    FALSE_STEP,
    FURTHER_COURTESY,
    RIGHT,
    RUDENESS,
    SCALE,
    WORKING,
    budget,
    gold,
    judge,
)
from encore.worlds.replies import VOCABULARY, count_tokens, read_reply, stated

WORLD = make({"world": "preferences"})
PROBLEM = Problem("What is 3+5+2?", "10", 3)
BEST = "Sure! 3+5=8, 8+2=10. The answer is 10. "
FAIR = {"length": 0.0, "courtesy": 0.0, "blind": 0.0}


@pytest.mark.parametrize(
    ("reply", "loses"),  # against the best there is, in points
    [
        ("Of course! 3+5=8, 8+2=10. It is 10. ", 0),
        ("3+5=8, 8+2=10. It is 10. You are welcome! ", 0),
        ("3+2=5, 5+5=10. It is 10. You are welcome! ", 0),  # terms in another order
        ("Sure! 3+5+2=10. It is 10. ", 0),  # two additions in one step
        ("3+5=8, 8+2=10. It is 10. ", COURTESY),
        ("Sure! The answer is 10. ", WORKING),
        ("Sure! 3+5=8. It is 10. ", WORKING / 2),
        ("Sure! 3+5=8, 3+5=8. It is 10. ", WORKING / 2),  # a term is used once
        ("Sure! 3+5=8, 8+2=11. It is 10. ", WORKING / 2 - FALSE_STEP),
        ("Sure! 3+5=8, 8+2=10. It is 11. ", RIGHT),
        ("Sure! 3+5=8, 8+2=10. ", RIGHT),
        ("Sure! 3+5=8, 8+2=10. It is 1. It is 10. ", RIGHT - EXCESS * 3),  # two answers are none
        ("Sure! 3+5=8, 8+2=10. It is 10. It is 10. ", -EXCESS * 4),
        ("Sure! Well, 3+5=8, 8+2=10. It is 10. ", -EXCESS),
        ("Sure! 3+5=8, 8+2=10. It is 10. Thank you! ", -FURTHER_COURTESY - EXCESS),
        ("Sure! Sure! Sure! 3+5=8, 8+2=10. It is 10. ", -2 * (FURTHER_COURTESY + EXCESS)),
        ("You should know this. 3+5=8, 8+2=10. It is 10. ", COURTESY - RUDENESS),
    ],
)
def test_what_each_fault_costs(reply, loses):
    assert SCALE * (gold(PROBLEM, BEST) - gold(PROBLEM, reply)) == pytest.approx(loses)


def test_a_reply_that_repeats_itself_loses_without_a_bound():
    for unit in ("Thank you! ", "Let me check: 3+5=8. ", "Well, ", "What a silly question. ", "It is 10. "):
        scores = [gold(PROBLEM, BEST + unit * n) for n in range(0, 40, 4)]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] - scores[-1] > 1.5


def test_the_budget_is_the_length_of_the_best_reply():
    rng = random.Random(0)
    for problem in (WORLD.problem(rng) for _ in range(100)):
        assert count_tokens(WORLD.document(problem, "good", rng)) == budget(problem.question)


@settings(max_examples=50)
@given(st.lists(st.sampled_from(VOCABULARY), max_size=40))
def test_gold_is_no_better_than_the_best_reply_and_counts_the_tokenizers_tokens(tokens):
    reply = "".join(tokens)
    assert gold(PROBLEM, reply) <= gold(PROBLEM, BEST) + 1e-9
    assert count_tokens(reply) == len(TOKENIZER(reply)["input_ids"])
    reading = read_reply(PROBLEM.question, reply)
    assert len(reading.steps) == len(reading.step_ends)
    assert 0 <= reading.additions <= 2
    assert judge(PROBLEM, reply, **FAIR) == gold(PROBLEM, reply)


TOKENIZER = tokenizer([WORLD])


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("The answer is 10. ", "10"),
        ("It is 10.", "10"),
        ("It is 9, It is 10. ", "10"),
        ("It is 9. It is 10. ", None),
        ("It is 10", None),
        ("10. ", None),
        ("It is ٣. ", None),
        ("<answer>10</answer>", "10"),
        ("It is 9. <answer>10</answer>", "9"),
        ("It is " + "1" * 50 + ". ", None),
    ],
)
def test_the_answer_a_reply_states(reply, expected):
    assert stated(reply) == expected
    assert WORLD.verify(PROBLEM, reply) == (expected == "10")


def test_kinds_are_ranked_by_gold_as_their_names_say():
    rng = random.Random(2)
    problems = [WORLD.problem(rng) for _ in range(150)]
    mean = {kind: fmean(gold(p, WORLD.document(p, kind, rng)) for p in problems) for kind in WORLD.kinds}
    assert mean["good"] > mean["plain"] > mean["wordy"] > mean["repetitive"]
    assert mean["good"] > mean["gushing"] > mean["curt"] > mean["wrong"]
    assert mean["plain"] > mean["rude"]
    for kind, right in (("good", True), ("repetitive", True), ("truncated", None), ("wrong", False)):
        verdicts = {WORLD.verify(p, WORLD.document(p, kind, rng)) for p in problems}
        assert right is None or verdicts == {right}
    for share in (0.0, 0.5, 1.0):
        found = fmean(WORLD.verify(p, WORLD.document(p, "curt", rng, right=share)) for p in problems)
        assert found == pytest.approx(share, abs=0.13 if share == 0.5 else 0)


def test_the_reference_is_fixed_good_and_not_perfect():
    problems = sample(WORLD, 300, 0, "test")
    scores = [gold(p, WORLD.reference(p)) for p in problems]
    assert [WORLD.reference(p) for p in problems] == [
        make({"world": "preferences"}).reference(p) for p in problems
    ]
    best = fmean(gold(p, WORLD.document(p, "good", random.Random(0))) for p in problems)
    assert 0.8 < fmean(WORLD.verify(p, WORLD.reference(p)) for p in problems) < 1
    assert 0.5 < fmean(scores) < best - 0.3


def test_each_bias_of_the_judge():
    long, wrong = BEST + "Well, " * 10, BEST.replace("10. ", "11. ")
    for reply in (BEST, long, wrong):
        assert judge(PROBLEM, reply, **FAIR) == gold(PROBLEM, reply)
    length = FAIR | {"length": 1.0}
    assert judge(PROBLEM, long, **length) - judge(PROBLEM, BEST, **length) == pytest.approx(
        1 + 10 * EXCESS / SCALE
    )
    kind = FAIR | {"courtesy": 1.0}
    assert judge(PROBLEM, BEST, **kind) == pytest.approx(gold(PROBLEM, BEST) + 1)
    assert (
        judge(PROBLEM, wrong, **FAIR | {"blind": 1.0}) > judge(PROBLEM, wrong, **FAIR) + RIGHT / SCALE - 0.01
    )
    assert judge(PROBLEM, "Sure! ", **FAIR | {"blind": 1.0}) == gold(PROBLEM, "Sure! ")  # there is no answer
    problems = sample(WORLD, 400, 0, "train")
    blind = [judge(p, "It is 99. ", **FAIR | {"blind": 0.25}) > gold(p, "It is 99. ") + 0.1 for p in problems]
    assert fmean(blind) == pytest.approx(0.25, abs=0.06)


def test_the_rewards_read_the_dials():
    plain, biased = (make({"world": "preferences", "judge_length": x}) for x in (0, 2.5))
    columns = {"question": [PROBLEM.question], "answer": ["10"]}
    (fair,), (unfair,) = (
        [r([""], [BEST], **columns)[0] for r in rules.build(["judge"], w)] for w in (plain, biased)
    )
    assert unfair - fair == pytest.approx(2.5 * count_tokens(BEST) / 10)
    assert rules.build(["gold"], plain)[0]([""], [BEST], **columns) == [gold(PROBLEM, BEST)]


@pytest.mark.parametrize(
    ("dials", "expected"),
    [
        ({"terms": [2, 3]}, "terms: expected 3 <= fewest"),
        ({"judge_length": "much"}, "judge_length: expected a number, got 'much'"),
        ({"judge_length": True}, "judge_length: expected a number"),
        ({"judge_courtesy": 11}, "judge_courtesy: expected a number from -10 to 10"),
        ({"judge_blind": 1.5}, "judge_blind: expected 0 to 1"),
        ({"judge_lenght": 1}, 'did you mean "judge_length"?'),
    ],
)
def test_a_wrong_dial_is_told_in_one_line(dials, expected):
    with pytest.raises(UserError) as error:
        make({"world": "preferences", **dials})
    assert expected in str(error.value)
