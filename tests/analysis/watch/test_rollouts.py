"""The last rollout of a file that grows, ends in the midst of a line, or holds what is no rollout."""

import json

import pytest
import watched_run
from hypothesis import given
from hypothesis import strategies as st

from analysis.watch import rollouts


def lines(steps: int) -> str:
    rows = [row for step in range(1, steps + 1) for row in watched_run.rollout(step, "text")]
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("left_out", "step", "questions"), [(0, 3, 2), (9, 3, 1), (900, 2, 2)], ids=["whole", "a row", "a group"]
)
def test_the_last_rollout_is_of_whole_groups(tmp_path, left_out, step, questions):
    path = tmp_path / "completions.jsonl"
    text = lines(3)
    path.write_text(text[: len(text) - left_out])
    rollout = rollouts.last(path)
    assert (rollout.step, len(rollout.questions)) == (step, questions)
    assert {len(question.group) for question in rollout.questions} == {4}
    assert rollout.questions[0].group[0].ended is False


def test_of_a_large_file_the_end_alone_is_read(tmp_path, monkeypatch):
    path = tmp_path / "completions.jsonl"
    path.write_text(lines(2000))
    sizes = []
    last_lines = rollouts.last_lines
    monkeypatch.setattr(
        rollouts, "last_lines", lambda file, size: sizes.append(size) or last_lines(file, size)
    )
    assert rollouts.last(path).step == 2000
    assert sizes == [rollouts.SIZES[0]]
    assert rollouts.SIZES[0] < path.stat().st_size / 4


def test_a_rollout_larger_than_the_first_look_is_found(tmp_path):
    path = tmp_path / "completions.jsonl"
    rows = [row for step in (1, 2) for row in watched_run.rollout(step, "y" * 100_000)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rollout = rollouts.last(path)
    assert (rollout.step, len(rollout.questions)) == (2, 2)
    assert len(rollout.questions[0].group[0].text) == rollouts.LONGEST


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000, "{", "null", "[]", '{"step": 1}', '{"step": "1", "prompt": "", "completion": ""}',
        '{"step": 1e3, "prompt": "", "completion": ""}', '{"step": -1, "prompt": "", "completion": ""}',
        f'{{"step": {"9" * 5000}, "prompt": "", "completion": ""}}', "\ufffd\x00",
    ],
)  # fmt: skip
def test_a_line_that_is_no_row_is_left_out(tmp_path, line):
    path = tmp_path / "completions.jsonl"
    path.write_text(f"{line}\n")
    assert rollouts.last(path) is None
    path.write_text(f"{line}\n{lines(1)}")
    assert rollouts.last(path).step == 1


KEYS = st.sampled_from(["reward", "rewards", "advantage", "tokens", "eos", "answer"])
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists)


@given(st.dictionaries(KEYS, VALUES | st.dictionaries(st.text(), VALUES)))
def test_no_value_of_a_row_is_too_odd(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("rows") / "completions.jsonl"
    path.write_text(json.dumps({"step": 1, "prompt": "p", "completion": "\ud800"} | values) + "\n")
    rollout = rollouts.last(path)
    json.dumps(rollout, allow_nan=False)
    assert len(rollout.questions) == 1
