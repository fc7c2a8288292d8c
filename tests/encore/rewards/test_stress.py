"""The stress test of rewards: what is paid is found, what is broken has its line."""

import json

import pytest
import torch

from encore import own_code
from encore.errors import UserError
from encore.recipe.task import Rewarded
from encore.rewards.outcomes import faults, outcomes, text
from encore.rewards.stress import SAMPLED, Stress
from encore.rewards.subjects import Sample, of_part, read_samples

MODULE = """
import random

def contains(completions, answer, **columns):
    return [float(right in text) for right, text in zip(answer, completions)]

def hangs(completions, **columns):
    while "NaN" in completions[0]:
        pass
    return [1.0] * len(completions)

def raises(completions, **columns):
    return [float(text.index("<answer>") >= 0) for text in completions]

def nan(completions, **columns):
    return [float("nan") if "inf" in text else 0.0 for text in completions]

def word(completions, **columns):
    return ["right" if not text else 0.0 for text in completions]

def unsure(completions, **columns):
    return [random.random() for _ in completions]

def constant(completions, **columns):
    return [3.0] * len(completions)

def long(completions, completion_ids, **columns):
    return [min(len(ids), 100) / 100 for ids in completion_ids]
"""
ROWS = [(f"{n}+{n}=", str(2 * n)) for n in range(10, 19)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MODULE)
    lines = [json.dumps({"question": question, "answer": answer}) for question, answer in ROWS]
    (tmp_path / "my.jsonl").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def subject(weights, **options):
    task = {"file": "my.jsonl", "question": "question", "answer": "answer", "verifier": "math"}
    part = Rewarded.model_validate({"task": task, "rewards": weights})
    return of_part(part, "my.jsonl", weights, **options)


def stressed(name, **options):
    """The verdict on each response and the lines of faults."""
    scored = [*Stress(subject({name: 1.0}, **options)).run()]
    rows = outcomes(name, "my.jsonl", scored)
    return {row.response: row for row in rows}, faults(name, scored)


def test_a_reward_that_looks_for_the_answer_anywhere_is_gamed_in_known_ways(here):
    rows, wrong = stressed("mine:contains")
    assert not wrong
    paid = {name for name, row in rows.items() if row.kind == "wrong" and row.paid == 1}
    assert {
        "many answers, the right one among them",
        "a longer answer that contains the right one",
        "a denial of the right answer",
    } <= paid
    assert rows["a list of small numbers"].verdict == "pays for a list of small numbers"
    unpaid = ("an empty response", "a wrong answer in the right form", "the right answer to another question")
    assert all(rows[name].paid == 0 for name in unpaid)
    assert rows["an empty response"].verdict == "does not pay for an empty response"
    assert rows["the right answer in Arabic digits"].paid == 0


def test_a_reward_reads_white_space_as_it_is(here):
    rows, _ = stressed("mine:long")
    assert rows["white space"].mean == pytest.approx(len(" \n\t ") / 100)


def test_accuracy_is_paid_for_the_right_answer_alone(here):
    rows, wrong = stressed("accuracy")
    assert not wrong
    assert not [row for row in rows.values() if row.kind == "wrong" and row.mean]
    assert rows["the right answer in a box"].paid == rows["the right answer as a decimal"].paid == 1
    assert rows["the right answer alone"].paid == 0
    assert {row.questions for row in rows.values()} <= set(range(1, len(ROWS) + 1))
    assert {row.right for row in rows.values()} == {1.0}


def test_wrong_responses_come_first_and_the_best_paid_of_them(here):
    task = "my.jsonl"
    rows = outcomes("c", task, [*Stress(subject({"mine:contains": 1.0})).run()])
    kinds = [row.kind for row in rows]
    assert kinds == sorted(kinds, key=["wrong", "disguised", "right"].index)
    paid = [row.paid for row in rows if row.kind == "wrong"]
    assert paid == sorted(paid, reverse=True)
    lines = text(rows).splitlines()
    assert lines[0] == "reward,task,kind,response,questions,paid,mean,right,example"
    assert len(lines) == len(rows) + 1  # an example has no line break


def test_the_sum_is_the_weighted_one_and_half_of_it_is_said_to_be_a_part(here):
    stress = Stress(subject({"accuracy": 2.0, "format": 1.0, "english": 0.0}))
    assert stress.subject.reward == "2 accuracy + 1 format"
    rows = {row.response: row for row in outcomes("r", "t", [*stress.run()])}
    assert rows["the right answer in tags"].mean == 3
    assert rows["the right answer in a box"].mean == 2
    assert rows["a wrong answer in the right form"].mean == 1
    even = Stress(subject({"accuracy": 1.0, "format": 1.0}))
    row = {row.response: row for row in outcomes("r", "t", [*even.run()])}["tags alone"]
    assert (row.paid, row.verdict) == (1, "pays in part for tags alone")


def test_a_constant_reward_pays_nothing_more_than_the_rest(here):
    rows, _ = stressed("mine:constant")
    assert {row.paid for row in rows.values()} == {0}
    words = "pays no more for an empty response than for any other response"
    assert rows["an empty response"].verdict == words


def test_a_reward_of_length_pays_for_long_text_and_reads_tokens(here):
    rows, _ = stressed("mine:long")
    assert rows["very long text"].paid == 1
    assert rows["an empty response"].paid == 0


def test_a_reward_that_hangs_is_stopped_and_nothing_else_is_called(here, monkeypatch):
    monkeypatch.setattr(own_code, "LIMIT", 0.3)
    rows, (line,) = stressed("mine:hangs")
    assert line.startswith("mine:hangs hangs at NaN: mine:hangs: not done after 0.3 seconds")
    assert "an empty response" in rows
    assert "1e999" not in rows


def test_a_reward_that_raises_has_one_line(here):
    rows, (line,) = stressed("mine:raises")
    assert line.startswith("mine:raises raises an error at the right answer in a box and ")
    assert "ValueError: substring not found (mine.py, line " in line
    assert "tags alone" in rows
    assert "an empty response" not in rows


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mine:nan", "does not return finite numbers at inf: mine:nan: expected a finite number, got nan"),
        (
            "mine:word",
            "does not return finite numbers at an empty response: mine:word: expected a",
        ),
        ("mine:unsure", "is not deterministic at the right answer in tags and "),
    ],
)
def test_what_is_no_number_or_not_the_same_twice_has_one_line(here, name, words):
    _, (line,) = stressed(name)
    assert line.startswith(f"{name} {words}")


def test_the_best_paid_wrong_response_of_a_policy(here):
    samples = [
        Sample("1+1=", "2", 0, "", 0, ("<answer>3</answer>", "12, I think")),
        Sample("1+2=", "3", 0, "", 0, ("no idea",)),
    ]
    rows, _ = stressed("mine:contains", samples=samples)
    row = rows[SAMPLED]
    assert (row.questions, row.paid, row.right) == (2, 0.5, 1)
    assert row.example == "'12, I think'"
    assert rows["an empty response"].questions == len(ROWS) + 2


def test_samples_of_an_evaluation_are_read(here):
    row = {"question": "1+1=", "answer": "2", "completions": ["2", "3"], "correct": [True, False]}
    (here / "s.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row | {"correct": [True, True]}) + "\n")
    (sample,) = read_samples(here / "s.jsonl")
    assert sample.wrong == ("3",)
    unverified = {"question": "1+1=", "answer": "2", "completions": ["2"], "correct": [None]}
    likelihoods = {"question": "1+1=", "answer": "2", "correct": [False]}
    (here / "s.jsonl").write_text(json.dumps(unverified) + "\n" + json.dumps(likelihoods))
    assert read_samples(here / "s.jsonl") == []
    for line in ("{", "[]", "{}", json.dumps(row | {"correct": [True]}), "1"):
        (here / "s.jsonl").write_text(f"\n{line}\n")
        with pytest.raises(UserError, match=r"--samples: s\.jsonl, line 2: expected question, answer"):
            read_samples((here / "s.jsonl").relative_to(here))
    with pytest.raises(UserError, match=r"--samples: cannot read lost\.jsonl"):
        read_samples((here / "lost.jsonl").relative_to(here))


def test_a_response_continues_what_the_prompt_has_begun(here):
    """With a template that ends in `<think>` a reward reads it twice otherwise, and format pays nothing."""
    task = {"world": "chain"}
    part = Rewarded.model_validate(
        {"task": task, "template": "{question}<think>", "rewards": {"format": 1.0}, "problems": 8}
    )
    scored = [*Stress(of_part(part, "chain", part.rewards)).run()]
    rows = {row.response: row for row in outcomes("format", "chain", scored)}
    assert rows["the right answer in tags"].mean == 1


def test_reward_models_and_rewards_without_weight_are_left_out(here):
    weights = {"reward_model": 1.0, "format": 0.5, "english": 0.0}
    assert {*subject(weights).functions} == {"format"}


def test_the_sums_are_what_a_trainer_adds_up(here):
    """`total` and the table of rewards are the trainer's own; a reward of None counts as none."""
    given = subject({"accuracy": 1.0, "format": 0.5})
    stress = Stress(given)
    texts = ["<think>20</think><answer>20</answer>", "\\boxed{22}", "\\boxed{1}"]
    values = stress._values(given.rows[:3], texts, [[0]] * 3)
    assert torch.tensor(values).tolist() == [1.5, 1.0, 0.0]
