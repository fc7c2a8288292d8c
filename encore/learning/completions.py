"""completions.jsonl: sampled completions with their rewards; cut back on resume, so that no row occurs twice.

It holds every completion of a small run. A rollout of a paper has thousands of long ones, so once the file
has `ALL` bytes, only the first group of each rollout is added. The file alone decides, so a resumed run keeps
the same rows.
"""

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from encore.errors import UserError

ALL = 256 * 2**20  # bytes


class Record(TypedDict, total=False):
    """A line of completions.jsonl; not every stage knows every key."""

    step: int
    prompt: str
    completion: str
    answer: str
    difficulty: int
    domain: str
    calls: int  # of a tool, and those of them that were malformed
    malformed: int
    turns: list[str]  # what the policy said, what the tool, and so on
    tokens: int  # of the policy's own
    eos: bool  # whether the completion has ended
    reward: float
    rewards: dict[str, float | None]
    advantage: float
    kl: float  # nats of the sequence, of PPO
    kept: bool  # of dynamic and of rejection sampling


class CompletionsLog:
    """An append-only JSONL file whose length is part of the checkpoint."""

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("ab")

    def append(self, rows: Sequence[Record], group_size: int) -> None:
        """Add a line for each row of a rollout, in which one group follows another."""
        if self.file.tell() >= ALL:
            rows = rows[:group_size]
        self.file.write("".join(json.dumps(row) + "\n" for row in rows).encode())

    def flush(self) -> int:
        """Force the lines to disk; returns the file's length in bytes."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return self.file.tell()

    def cut(self, length: int) -> None:
        """Keep only the first `length` bytes. Raises UserError where the file is shorter."""
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
    """Whether a recorded completion is correct by its accuracy reward."""
    return (row["rewards"].get("accuracy") or 0.0) > 0


def by_correctness(rows: Sequence[Record], group_size: int) -> dict[str, float]:
    """Accuracy, length in tokens of right and wrong completions, shares of groups all right or all wrong, and
    of completions that are wrong in the other groups.

    In `rows` one group follows another. Of those alone that have an accuracy reward; empty where none has.
    What is of no completion is NaN, which the log leaves out.
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
    """Calls a completion, the share of completions that call, and of calls that are malformed.

    Empty where there is no tool. The share of no calls at all is NaN, which the log leaves out.
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
    """Measures of each domain, as NAME/DOMAIN, and the mean of each reward over the rows that have it.

    TRL has the mean of each reward by domain, as rewards/REWARD/DOMAIN/mean. Empty where rows have no
    domain. In `rows` one group follows another.
    """
    metrics: dict[str, float] = {}
    for domain in sorted({row["domain"] for row in rows if "domain" in row}):
        own = [row for row in rows if row["domain"] == domain]
        rewards = [row["reward"] for row in own]
        groups = [rewards[i : i + group_size] for i in range(0, len(rewards), group_size)]
        flat = sum(math.isclose(min(group), max(group), abs_tol=1e-8) for group in groups)
        measured = by_correctness(own, group_size) | {
            "reward": sum(rewards) / len(rewards),
            "frac_reward_zero_std": flat / len(groups),
            "completions/mean_length": sum(row["tokens"] for row in own) / len(own),
            "completions/clipped_ratio": sum(not row["eos"] for row in own) / len(own),
        }
        metrics |= {f"{name}/{domain}": value for name, value in measured.items()}
    values: dict[str, list[float]] = {}
    for row in rows if metrics else []:
        for name, value in row["rewards"].items():
            if value is not None:
                values.setdefault(name, []).append(value)
    return metrics | {f"rewards/{name}/mean": sum(of) / len(of) for name, of in values.items()}
