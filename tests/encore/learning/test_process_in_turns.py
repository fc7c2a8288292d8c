"""Advantage `process` for completions of several turns: each own token's, by a second way in float64."""

import statistics
from itertools import pairwise

import pytest
import torch

from encore import worlds
from encore.learning.estimators import Process
from encore.learning.minibatch import Minibatch
from encore.learning.scoring import Scores
from encore.rewards.step_rewards import reader

WORLD = worlds.make({"world": "frozen_lake"})
WORDS = worlds.tokenizer([WORLD])
QUESTION = "SFF/FHF/FFG0="
# each is the policy's text and what it is told, by turns
TALKS = [
    [
        "<tool>R</tool>",
        "<result>01</result>",
        "<tool>R</tool>",
        "<result>02</result>",
        "<answer>goal</answer><eos>",
    ],
    ["<tool>L</tool>", "<result>00</result>", "<answer>goal</answer><eos>"],
    ["<answer>goal</answer><eos>"],
    [
        "<tool>D</tool>",
        "<result>10</result>",
        "<tool>R</tool>",
        "<result>hole</result>",
        "<tool>L</tool><eos>",
    ],
]
# (turn, reward) of each step: a call that leads nearer earns 1; the answer, the last step, is wrong in all
STEPS = [
    [(0, 1.0), (2, 1.0), (4, 0.0)],
    [(0, 0.0), (2, 0.0)],
    [(0, 0.0)],
    [(0, 1.0), (2, 0.0), (4, 0.0), (4, 0.0)],
]


def ids(text: str) -> list[int]:
    return WORDS(text)["input_ids"]


def expected() -> list[list[float]]:
    """The advantage of each token, 0 for those that the policy was told."""
    rewards = [reward for steps in STEPS for _, reward in steps]
    mean, std = statistics.mean(rewards), statistics.stdev(rewards)
    rows = []
    for talk, steps in zip(TALKS, STEPS, strict=True):
        sizes = [0, *torch.tensor([len(ids(turn)) for turn in talk]).cumsum(0).tolist()]
        ends = [sizes[turn + 1] - 1 for turn, _ in steps]
        if talk == TALKS[3]:
            ends[2] -= 1  # its last call ends one token before its text
        row = []
        for turn, (start, end) in enumerate(pairwise(sizes)):
            for place in range(start, end):
                later = [reward for (_, reward), at in zip(steps, ends, strict=True) if at >= place]
                row.append(0.0 if turn % 2 else sum((reward - mean) / (std + 1e-4) for reward in later))
        rows.append(row)
    return rows


def test_each_own_token_has_the_rewards_of_the_steps_that_end_at_or_after_it():
    turns = [[(ids(turn), number % 2 == 0) for number, turn in enumerate(talk)] for talk in TALKS]
    whole = [[token for part, _ in talk for token in part] for talk in turns]
    own = [[int(mine) for part, mine in talk for _ in part] for talk in turns]
    said = [[token for part, mine in talk if mine for token in part] for talk in turns]
    width = max(map(len, whole))

    def padded(rows: list[list[int]]) -> torch.Tensor:
        return torch.tensor([row + [0] * (width - len(row)) for row in rows])

    batch = Minibatch(
        prompt_ids=torch.zeros(4, 1, dtype=torch.long),
        prompt_mask=torch.ones(4, 1, dtype=torch.long),
        completion_ids=padded(whole),
        completion_mask=padded([[1] * len(row) for row in whole]),
        own=padded(own),
        advantages=torch.zeros(4),
    )
    row = {"question": QUESTION, "answer": "goal", "difficulty": 4}
    scores = Scores(
        names=["accuracy"],
        weights=torch.ones(1),
        rewards=torch.zeros(4, 1),
        own=slice(0, 4),
        rows=[row] * 4,
        texts=WORDS.batch_decode(said, skip_special_tokens=True),
        ids=said,
        ended=torch.ones(4, dtype=torch.bool),
        records=[],
    )
    estimates = Process(reader(WORLD, WORDS), 4).estimate(batch, scores).advantages
    for row_estimates, row_expected in zip(estimates.tolist(), expected(), strict=True):
        assert row_estimates[: len(row_expected)] == pytest.approx(row_expected, abs=1e-5)
        assert not any(row_estimates[len(row_expected) :])
