"""Reward functions: TRL's signature, R1-Zero's two rules, a fair coin, and mathematics in bounded time."""

import random
import time
from types import SimpleNamespace

import pytest

from encore.errors import UserError
from encore.rewards.math_answers import Comparer
from encore.rewards.rules import build, mathematics
from encore.rewards.verifiers import math_verifier
from encore.worlds import WORLDS, Problem, make, sample

GOOD = "<think>3+5=8</think><answer>8</answer>"


def rows(completions, question="3+5=", answer="8"):
    n = len(completions)
    columns = {"question": [question] * n, "answer": [answer] * n, "difficulty": [2] * n}
    return {"prompts": ["p"] * n, "completions": completions, "completion_ids": [[1]] * n, **columns}


def test_accuracy_and_format_are_judged_apart():
    accuracy, form = build(["accuracy", "format"], make({"world": "chain"}))
    assert [accuracy.__name__, form.__name__] == ["accuracy", "format"]
    completions = [GOOD, "<answer>8</answer>", "<think>3+5=9</think><answer>9</answer>", "8", ""]
    assert accuracy(**rows(completions)) == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert form(**rows(completions)) == [1.0, 0.0, 1.0, 0.0, 0.0]


def test_conversations_and_further_columns_are_accepted():
    (accuracy,) = build(["accuracy"], make({"world": "chain"}))
    batch = rows([[{"role": "assistant", "content": GOOD}]])
    del batch["difficulty"]
    assert accuracy(**batch, trainer_state=None, log_extra=print, other=[1]) == [1.0]


@pytest.mark.parametrize("name", [name for name in WORLDS if getattr(WORLDS[name], "answer_suffices", True)])
def test_gold_answers_score_one_and_garbage_nothing(name):
    world = make({"world": name})
    (accuracy,) = build(["accuracy"], world)
    problems = sample(world, 50, 0, "test")
    columns = {
        "prompts": [p.question for p in problems],
        "question": [p.question for p in problems],
        "answer": [p.answer for p in problems],
    }
    assert accuracy(completions=[f"<answer>{p.answer}</answer>" for p in problems], **columns) == [1.0] * 50
    for garbage in ("", "\ud800", "<answer>" * 1000, "<answer></answer>"):
        assert accuracy(completions=[garbage] * 50, **columns) == [0.0] * 50


def test_a_worlds_own_rewards_are_known_by_name():
    world = make({"world": "sort"})
    position, both = build(["position", "inclusion_ordering"], world)
    batch = rows(["<answer>3,5,9</answer>"], "5,3,9=", "3,5,9")
    assert position(**batch) == both(**batch) == [1.0]
    with pytest.raises(UserError, match=r'rewards\.positon: unknown reward; did you mean "position"'):
        build(["positon"], world)
    with pytest.raises(UserError, match=r"rewards\.position: unknown reward"):
        build(["position"], make({"world": "chain"}))


def test_soft_overlong_is_dapos_equation_13():
    cap, cache = 20, 8
    (punish,) = build(["soft_overlong"], None, caps={0: cap}, cache=cache)
    assert punish.__name__ == "soft_overlong"
    lengths = range(1, 25)
    values = punish(prompts=[], completions=[], completion_ids=[[1] * n for n in lengths], trainer_state=None)
    for length, value in zip(lengths, values, strict=True):
        if length <= cap - cache:
            assert value == 0
        elif length <= cap:
            assert value == pytest.approx((cap - cache - length) / cache)
        else:
            assert value == -1
    assert values[cap - 1] == -1


def test_soft_overlong_follows_the_cap_in_force():
    (punish,) = build(["soft_overlong"], None, caps={0: 20, 120: 40}, cache=8)
    ids = [[1] * 24]
    for step, expected in ((0, -1), (119, -1), (120, 0)):
        state = SimpleNamespace(global_step=step)
        assert punish(prompts=[], completions=[], completion_ids=ids, trainer_state=state) == [expected]
    with pytest.raises(UserError, match=r"expected less than args\.max_completion_length 20, got 20"):
        build(["soft_overlong"], None, caps={0: 20, 120: 40}, cache=20)


@pytest.mark.parametrize(
    ("names", "cache", "says"),
    [
        (["soft_overlong"], None, "soft_overlong_cache: missing"),
        (["accuracy"], 8, "rewards.soft_overlong: missing"),
        (["soft_overlong"], 20, "expected less than args.max_completion_length 20, got 20"),
    ],
)
def test_soft_overlong_and_its_cache_go_together(names, cache, says):
    with pytest.raises(UserError, match=says):
        build(names, make({"world": "chain"}), caps={0: 20}, cache=cache)


def test_the_coin_is_fair_repeatable_and_blind_to_order():
    (coin,) = build(["random"], None, seed=3)
    texts = [f"<answer>{i}</answer>" for i in range(500)] * 4
    values = coin(["p"] * 2000, texts)
    assert sum(values) / 2000 == pytest.approx(0.5, abs=0.05)
    assert build(["random"], None, seed=3)[0](["p"] * 2000, texts) == values
    assert build(["random"], None, seed=4)[0](["p"] * 2000, texts) != values

    shuffled = texts.copy()
    random.Random(0).shuffle(shuffled)
    pairs = sorted(zip(shuffled, coin(["p"] * 2000, shuffled), strict=True))
    assert pairs == sorted(zip(texts, values, strict=True))


def test_the_coin_favours_no_completion():
    (coin,) = build(["random"], None)
    same = coin(["p"] * 2000, [GOOD] * 2000)
    assert sum(same) / 2000 == pytest.approx(0.5, abs=0.05)
    steps = [coin(["p"], [GOOD], trainer_state=SimpleNamespace(global_step=s))[0] for s in range(400)]
    assert sum(steps) / 400 == pytest.approx(0.5, abs=0.1)


@pytest.fixture(scope="module")
def verify():
    return math_verifier()


@pytest.mark.parametrize(
    ("gold", "completion", "right"),
    [
        ("8", "<think>a</think><answer>8</answer>", True),
        ("8", r"<think>a</think><answer>so \boxed{8}</answer>", True),
        ("8", r"so \boxed{8.0}", True),
        (r"\frac{1}{2}", r"\boxed{0.5}", True),
        (r"\boxed{\frac{1}{2}}", r"\boxed{\dfrac12}", True),
        ("1,000", r"\boxed{1000}", True),
        ("x^2+2x+1", r"\boxed{(x+1)^2}", True),
        ("3+5=8\n#### 8", "So she has 8 eggs.\n#### 8", True),
        ("18", "<answer>She makes $18 every day.</answer>", True),
        ("34", r"so it is $\boxed 34$", True),
        ("34", r"so it is \fbox{34}", True),
        ("8", r"\boxed{9}", False),
        ("8", r"\boxed{8} or \boxed{9}", False),
        ("8", "8", False),
        ("8", r"<answer>\boxed{8</answer>", False),
        ("8", r"<answer>8</answer><answer>9</answer>\boxed{8}", False),
        ("8", "<answer></answer>", False),
        ("8", "\\boxed{8\ud800}", False),
        ("8", r"\boxed{__import__('os').abort()}", False),
        ("", r"\boxed{}", False),
    ],
)
def test_mathematics(verify, gold, completion, right):
    assert verify(Problem("q", gold, 0), completion) is right


@pytest.mark.parametrize(
    ("question", "gold", "completion", "right"),
    [
        ("Compute $1+1$.", "2", r"\boxed{1+1}", False),
        ("Compute $1+1$.", "2", r"\boxed{2}", True),
        (r"Write $\frac{6}{3}$ as a whole number", "2", r"\boxed{\frac{6}{3}}", False),
        (r"Is it $\frac{1}{2}$ or $\frac{1}{3}$?", "1/2", r"\boxed{\frac{1}{2}}", True),
        ("Is it 7 or 8?", "8", r"\boxed{8}", True),
        ("Compute $1+1$.", "2", "<answer>Compute $1+1$.</answer>", False),
        ("He has 18 eggs. How many are left?", "18", "<answer>18 eggs</answer>", True),
        (
            "How many eggs are in a box of 18?",
            "18",
            "<answer>How many eggs are in a box of 18?</answer>",
            False,
        ),
    ],
)
def test_a_copied_question_is_no_answer(verify, question, gold, completion, right):
    assert verify(Problem(question, gold, 0), completion) is right


@pytest.mark.parametrize(
    "unit", ["\\boxed{", "8", "<answer>", "\\boxed{8} ", "{", "\ud800", "#### 8 ", "\\boxed 8\n"]
)
def test_a_megabyte_scores_nothing_at_once(verify, unit):
    start = time.perf_counter()
    assert not verify(Problem("q", "9", 0), unit * (1_000_000 // len(unit)))
    assert time.perf_counter() - start < 4


def test_hub_tasks_take_accuracy_from_mathematics():
    (accuracy,) = build(["accuracy"], None)
    assert accuracy(**rows([GOOD, "<answer>9</answer>"], answer="8.0")) == [1.0, 0.0]


@pytest.mark.slow
def test_what_could_not_be_compared_is_told_from_what_is_wrong():
    metrics = {}
    accuracy = mathematics(Comparer(limit=0.5))
    batch = rows([r"\boxed{(10^{9})!}", r"\boxed{9}", r"\boxed{8}"], question="q")
    assert accuracy(**batch, log_metric=metrics.__setitem__) == [0.0, 0.0, 1.0]
    assert metrics == {"rewards/accuracy/unfinished": 1.0, "rewards/accuracy/unreadable": 1 / 3}
