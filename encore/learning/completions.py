"""The file completions.jsonl: sampled completions with their rewards.

On resume the file is cut back, so that no row occurs twice. It holds every completion of a small run. The
rollouts of a paper have thousands of long completions, so once the file has `ALL` bytes, only the first group
of each rollout is added. Only the file's size decides, so a resumed run keeps the same rows.
"""

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from encore.errors import UserError

ALL = 256 * 2**20  # bytes of a file that keeps all completions


class Record(TypedDict, total=False):
    """A line of completions.jsonl; not every stage knows every key."""

    step: int
    prompt: str
    completion: str
    answer: str
    difficulty: int
    domain: str
    calls: int  # calls of a tool, and how many of them were malformed
    malformed: int
    turns: list[str]  # texts of the policy and of the tool, in turn
    call_rewards: list[float | None]  # the reward of each answered call, of an environment that rewards calls
    states: list[str | None]  # the state after each answered call, of an environment that shows it
    tokens: int  # tokens that the policy has written
    eos: bool  # whether the completion has ended
    reward: float
    rewards: dict[str, float | None]
    advantage: float
    kl: float  # KL of the sequence, in nats, which PPO logs
    kept: bool  # whether dynamic or rejection sampling has kept the completion


class CompletionsLog:
    """An append-only JSONL file whose length is part of the checkpoint."""

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("ab")

    def append(self, rows: Sequence[Record], group_size: int) -> None:
        """Add a line for each row of a rollout, in which one group follows another.

        If the file has `ALL` bytes, add the lines of the first group alone.
        """
        if self.file.tell() >= ALL:
            rows = rows[:group_size]
        self.file.write("".join(json.dumps(row) + "\n" for row in rows).encode())

    def flush(self) -> int:
        """Force the lines to disk and return the file's length in bytes."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return self.file.tell()

    def cut(self, length: int) -> None:
        """Keep only the first `length` bytes. Raises UserError if the file is shorter."""
        self.file.flush()
        if self.path.stat().st_size < length:
            raise UserError(
                f"{self.path}: shorter than its checkpoint says; "
                f"delete {self.path.parent} to start this stage again"
            )
        self.file.truncate(length)
        self.file.seek(0, os.SEEK_END)

    def close(self) -> None:
        self.file.close()


def correct(row: Record) -> bool:
    """Return whether a recorded completion is correct by its accuracy reward."""
    return (row["rewards"].get("accuracy") or 0.0) > 0


def by_correctness(rows: Sequence[Record], group_size: int) -> dict[str, float]:
    """Return accuracy, mean lengths of right and wrong completions in tokens, and shares of groups.

    The shares are `all_correct` and `all_wrong`, of all groups, and `wrong_in_mixed`: the share of the wrong
    completions within the other groups. In `rows` one group follows another. Only rows with an accuracy
    reward count; without any the result is empty. A mean over no completion is NaN, which the log leaves out.
    """
    rows = [row for row in rows if "accuracy" in row["rewards"]]
    if not rows:
        return {}
    right = [correct(row) for row in rows]
    lengths = {True: [0.0, 0], False: [0.0, 0]}
    for row, is_right in zip(rows, right, strict=True):
        lengths[is_right][0] += row["tokens"]
        lengths[is_right][1] += 1
    groups = [sum(right[i : i + group_size]) for i in range(0, len(right), group_size)]
    mixed = [g for g in groups if 0 < g < group_size]
    return {
        "accuracy": sum(right) / len(right),
        "length/correct": lengths[True][0] / lengths[True][1] if lengths[True][1] else math.nan,
        "length/incorrect": lengths[False][0] / lengths[False][1] if lengths[False][1] else math.nan,
        "groups/all_correct": sum(g == group_size for g in groups) / len(groups),
        "groups/all_wrong": sum(g == 0 for g in groups) / len(groups),
        "groups/wrong_in_mixed": 1 - sum(mixed) / (len(mixed) * group_size) if mixed else math.nan,
    }


def by_calls(rows: Sequence[Record]) -> dict[str, float]:
    """Return the calls per completion, the share of completions that call, and the share of malformed calls.

    The result is empty if there is no tool. The share of malformed calls is NaN without a call, and the log
    leaves NaN out.
    """
    if "calls" not in rows[0]:
        return {}
    calls, malformed = sum(row["calls"] for row in rows), sum(row["malformed"] for row in rows)
    return {
        "tool/calls": calls / len(rows),
        "tool/used": sum(row["calls"] > 0 for row in rows) / len(rows),
        "tool/malformed": malformed / calls if calls else math.nan,
    }


def by_domain(rows: Sequence[Record], group_size: int) -> dict[str, float]:
    """Return the measures of each domain, as NAME/DOMAIN, and the mean of each reward over its rows.

    The mean of a reward in a domain is called rewards/REWARD/DOMAIN/mean, as in TRL. The result is empty if
    the rows have no domain. In `rows` one group follows another.
    """
    metrics: dict[str, float] = {}
    for domain in sorted({row["domain"] for row in rows if "domain" in row}):
        members = [row for row in rows if row["domain"] == domain]
        rewards = [row["reward"] for row in members]
        groups = [rewards[i : i + group_size] for i in range(0, len(rewards), group_size)]
        flat = sum(math.isclose(min(group), max(group), abs_tol=1e-8) for group in groups)
        measured = by_correctness(members, group_size) | {
            "reward": sum(rewards) / len(rewards),
            "frac_reward_zero_std": flat / len(groups),
            "completions/mean_length": sum(row["tokens"] for row in members) / len(members),
            "completions/clipped_ratio": sum(not row["eos"] for row in members) / len(members),
        }
        metrics |= {f"{name}/{domain}": value for name, value in measured.items()}
    values: dict[str, list[float]] = {}
    for row in rows if metrics else []:
        for name, value in row["rewards"].items():
            if value is not None:
                values.setdefault(name, []).append(value)
    return metrics | {f"rewards/{name}/mean": sum(of) / len(of) for name, of in values.items()}
