import json
from dataclasses import asdict

import pytest
import toy_preferences as toy
from hypothesis import given
from hypothesis import strategies as st
from toy_run import HOSTILE, HUGE, SURROGATE

from analysis.provenance import completions

anything = st.text(st.characters(exclude_categories=()))  # lone surrogates included


@given(anything)
def test_any_text_becomes_fit_to_show(text):
    shown = completions.safe(text)
    shown.encode("utf-8")  # would raise on a lone surrogate
    assert not set(shown) & {chr(c) for c in range(32) if chr(c) not in "\n\t"}
    assert completions.safe(shown) == shown


def test_a_megabyte_is_clipped_with_a_note():
    shown = completions.safe(HUGE)
    assert len(shown) < completions.LONGEST + 100
    assert shown.endswith("[clipped: 1,000,000 characters in all]")


def test_plain_text_is_left_alone():
    text = "<think>3+5=8</think>\n\tünï \U0001f600"
    assert completions.safe(text) == text
    assert completions.safe("a\0b\x1b[31m") == "a\u2400b\u241b[31m"


def test_rollouts_are_chosen_by_rule(run):
    rows = completions.rollouts(run)
    assert {row.arm for row in rows} == set(run.arms)
    of_base = [row for row in rows if row.arm == "base-recipe"]
    assert sorted({row.step for row in of_base}) == [1, 16, 31, 45, 60]
    for step in (1, 60):
        outcomes = [row.correct for row in of_base if row.step == step]
        assert max(outcomes.count(True), outcomes.count(False)) <= completions.EACH
    texts = [row.completion for row in of_base]
    assert HOSTILE in texts
    assert SURROGATE.replace("\ud800", "\ufffd") in texts
    json.dumps([asdict(row) for row in rows], ensure_ascii=False).encode("utf-8")


def test_one_prompt_is_shown_once_an_outcome(run, monkeypatch):
    rows = [
        {"step": 1, "prompt": prompt, "completion": str(i), "reward": 1.0, "rewards": {"accuracy": right}}
        for i, (prompt, right) in enumerate([("a", 1.0), ("a", 1.0), ("a", 0.0), ("b", 1.0)])
    ]
    monkeypatch.setattr(completions, "read_lines", lambda path: rows)
    shown = [row for row in completions.rollouts(run) if row.arm == "random"]
    assert sorted(row.completion for row in shown) == ["0", "2", "3"]


def test_what_a_tool_has_said_stands_on_lines_of_its_own(run, monkeypatch):
    turns = ["<tool>3*4</tool>", "<result>12</result>", "<answer>12</answer>"]
    row = {"step": 1, "prompt": "3*4=", "completion": "".join(turns), "reward": 1.0, "turns": turns}
    monkeypatch.setattr(completions, "read_lines", lambda path: [row, {**row, "turns": ["alone"]}])
    laid, *_ = [shown.completion for shown in completions.rollouts(run)]
    assert laid == "<tool>3*4</tool>\n\u2190 <result>12</result>\n<answer>12</answer>"
    sample = {
        "question": "3*4=",
        "answer": "12",
        "completions": ["".join(turns)],
        "correct": [True],
        "tokens": [9],
    }
    ((called, alone),) = [completions.pair(["a", "b"], [{**sample, "turns": [turns]}, sample]).sides]
    assert called.completion == laid
    assert alone.completion == "".join(turns)


def test_before_and_after_answer_the_same_problem(run):
    pairs = completions.before_after(run, "heldout")
    assert [pair.difficulty for pair in pairs] == [3, 4, 5, 6, 7, 8]
    sides = [side.checkpoint for side in pairs[0].sides]
    assert sides == ["before", *(f"{arm}, after" for arm in run.arms)]


@pytest.mark.parametrize(
    ("rewards", "verdict"),
    [({"accuracy": 1.0}, True), ({"accuracy": 0.0}, False), ({}, None), ({"accuracy": None}, None)],
)
def test_correct_is_what_the_verifier_said(rewards, verdict):
    assert completions.correct({"rewards": rewards}) is verdict


def test_a_reward_that_is_no_number_becomes_none():
    assert [completions.finite(x) for x in (1.0, 0, None, float("nan"), float("inf"))] == [
        1.0,
        0,
        None,
        None,
        None,
    ]


def test_policies_stand_side_by_side_on_the_same_prompts(rlhf, preferred):
    pairs = completions.side_by_side(rlhf, preferred.task, preferred.policies)
    assert [pair.difficulty for pair in pairs] == [1, 2, 3, 4, 5]
    shown = [side.checkpoint for side in pairs[0].sides]
    assert shown == ["base", "sft", "base-recipe", "kl-none", "kl-strong", "dpo"]  # one of each kind first
    assert pairs[0].sides[0].completion == HOSTILE
    first = toy.rows_of(rlhf, "dpo", "after")[1]
    side = pairs[1].sides[-1]
    assert side.completion == first["completions"][0]
    assert side.scores.startswith(f"gold {first['gold'][0]:.2f}".replace("-", "\N{MINUS SIGN}"))
