"""The record of completions: all of a small run, a sample of a large one, the same after a resume."""

import json
from pathlib import Path

import pytest

from encore.errors import UserError
from encore.learning import completions
from encore.learning.completions import CompletionsLog, by_correctness


def rollout(step: int) -> list[dict]:
    """Two groups of two."""
    return [{"step": step, "completion": text} for text in ("a", "b", "c", "d")]


def kept(path: Path) -> list[tuple[int, str]]:
    return [(row["step"], row["completion"]) for row in map(json.loads, path.read_text().splitlines())]


def test_once_the_file_is_large_only_the_first_group_is_added(tmp_path: Path, monkeypatch):
    line = len(json.dumps(rollout(1)[0])) + 1
    monkeypatch.setattr(completions, "ALL", 7 * line)
    log = CompletionsLog(tmp_path / "whole.jsonl")
    for step in (1, 2, 3, 4):
        log.append(rollout(step), 2)
    log.close()
    every = [(step, text) for step in (1, 2) for text in "abcd"]
    assert kept(log.path) == every + [(step, text) for step in (3, 4) for text in "ab"]

    resumed = CompletionsLog(tmp_path / "resumed.jsonl")
    resumed.append(rollout(1), 2)
    length = resumed.flush()
    for step in (2, 3):
        resumed.append(rollout(step), 2)
    resumed.close()
    resumed = CompletionsLog(resumed.path)
    resumed.cut(length)
    for step in (2, 3, 4):
        resumed.append(rollout(step), 2)
    resumed.close()
    assert resumed.path.read_bytes() == log.path.read_bytes()


def test_a_file_shorter_than_its_checkpoint_says_so(tmp_path: Path):
    log = CompletionsLog(tmp_path / "log.jsonl")
    with pytest.raises(UserError, match="shorter than its checkpoint says"):
        log.cut(1)


@pytest.mark.parametrize(
    ("right", "share"),
    [("1110 0000 1111 1000", 0.5), ("1000 0000", 0.75), ("1111 0000", None)],
)
def test_wrong_completions_of_the_groups_that_are_neither(right: str, share: float | None):
    rows = [{"tokens": 5, "rewards": {"accuracy": float(each)}} for each in right.replace(" ", "")]
    found = by_correctness(rows, 4)["groups/wrong_in_mixed"]
    assert found == share if share is not None else found != found
