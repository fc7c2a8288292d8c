"""The rewards of a rollout's completions, and their records."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from accelerate.utils import gather, gather_object
from torch import Tensor

from encore.data.forms import PREFILL
from encore.learning.completions import Record
from encore.learning.resumable import stop_unless_finite
from encore.learning.samplers import Sampled
from encore.objectives.advantages import total
from encore.recipe.kinds.rollout import LEARNED
from encore.rewards.domains import check_routed, split
from encore.rewards.table import reward_table
from encore.sampling.turns import CALLS, EPISODE, TURNS
from encore.worlds.protocol import Problem

Row = dict[str, Any]  # the columns of a prompt that rewards read
KEPT = ("answer", "difficulty", "domain", *CALLS, *EPISODE, TURNS)  # columns that completions.jsonl keeps
# takes a trainer, the names and weights of its reward functions, and the rewards of all completions
Check = Callable[[Any, Sequence[str], Tensor, Tensor], None]


def problem_of(row: Row) -> Problem:
    """Return the problem that a prompt's row asks."""
    return Problem(row["question"], row["answer"], row.get("difficulty", 0), row.get(PREFILL) or "")


@dataclass(frozen=True)
class Scores:
    """The rewards of a round's completions, from all processes together."""

    names: list[str]  # names of the reward functions
    weights: Tensor  # (functions,)
    rewards: Tensor  # (completions of all processes, functions), NaN where a function gives no reward
    own: slice  # the rows of this process's completions
    rows: list[Row]  # this process's prompts
    texts: list[str]  # texts that the policy wrote for these prompts
    ids: list[list[int]]  # the same texts as tokens
    ended: Tensor  # (this process's completions,) of bool: whether the last token ends it
    records: list[Record]  # the lines of completions.jsonl of this process's completions

    @property
    def totals(self) -> Tensor:
        """The weighted sum of the rewards of each completion, over all processes: (completions,)."""
        return total(self.rewards, self.weights)

    @property
    def accuracy(self) -> Tensor:
        """The accuracy reward of each completion, over all processes: (completions,)."""
        return self.rewards[:, self.names.index("accuracy")]


@dataclass
class Scorer:
    """An object that calls the reward functions of a trainer of TRL."""

    trainer: Any
    check: Check
    ends: list[int] = field(init=False)  # tokens that end a completion
    logged: dict[str, list[float]] = field(default_factory=dict)  # metrics of the round

    def __post_init__(self) -> None:
        self.ends = list(self.trainer.eos_token_ids)

    def ended(self, sampled: Sampled) -> Tensor:
        """Return whether the policy has ended each completion, (completions,) of bool.

        TRL also counts a padding token at the cap as an end, although a policy may sample this token.
        """
        flags = [tokens[-1] in self.ends for tokens in sampled.said]
        return torch.tensor(flags, device=self.trainer.accelerator.device)

    def score(self, rows: list[Row], sampled: Sampled, ended: Tensor) -> Scores:
        """Score the completions of `rows` by the policy's own text, without a tool's results.

        Raises UserError if a reward that must be a finite number is not.
        """
        trainer = self.trainer
        rows = [
            row | {name: values[place] for name, values in sampled.columns.items()}
            for place, row in enumerate(rows)
        ]
        check_routed(trainer.reward_func_names, rows)
        ids = sampled.said
        texts = trainer.processing_class.batch_decode(ids, skip_special_tokens=True)
        rewards = gather(self.rewards(rows, texts, ids))
        self.check(trainer, trainer.reward_func_names, trainer.reward_weights, rewards)
        start = trainer.accelerator.process_index * len(rows)
        mine = slice(start, start + len(rows))
        self.require_judged(rewards[mine], rows)
        return Scores(
            names=trainer.reward_func_names,
            weights=trainer.reward_weights,
            rewards=rewards,
            own=mine,
            rows=rows,
            texts=texts,
            ids=ids,
            ended=ended,
            records=self.records(rows, sampled, ended.tolist(), rewards[mine]),
        )

    def rewards(self, rows: list[Row], texts: list[str], ids: list[list[int]]) -> Tensor:
        """Return the rewards of this process's completions, (completions, functions); None becomes NaN."""
        trainer = self.trainer
        options = {"trainer_state": trainer.state, "log_metric": self.log}
        table = reward_table(trainer.reward_funcs, rows, texts, ids, **options)
        return table.to(trainer.accelerator.device)

    def log(self, name: str, value: float) -> None:
        """Log a metric of a reward function, which calls this method as `log_metric`."""
        self.logged.setdefault(name, []).append(value)

    def metrics(self) -> dict[str, float]:
        """Return the mean of each metric that reward functions have logged, over all processes."""
        logged, self.logged = self.logged, {}
        means = {}
        for name in sorted({name for names in gather_object([[*logged]]) for name in names}):
            values = logged.get(name, [])
            sums = torch.tensor(
                [sum(values), len(values)], dtype=torch.float32, device=self.trainer.accelerator.device
            )
            total, count = self.trainer.accelerator.gather(sums).view(-1, 2).sum(dim=0).tolist()
            means[name] = total / count
        return means

    def records(self, rows: list[Row], sampled: Sampled, ended: list[bool], rewards: Tensor) -> list[Record]:
        """Return the lines of completions.jsonl; `rewards`: (completions, functions)."""
        tokenizer = self.trainer.processing_class
        texts = tokenizer.batch_decode(sampled.completions, skip_special_tokens=True)
        names = [split(name) for name in self.trainer.reward_func_names]
        totals = total(rewards, self.trainer.reward_weights).tolist()
        lines = [
            {
                "step": self.trainer.state.global_step + 1,
                "prompt": row["prompt"],
                "completion": text,
                **{key: row[key] for key in KEPT if key in row},
                "tokens": len(tokens),
                "eos": end,
                "reward": reward,
                "rewards": {
                    name: None if math.isnan(value) else value
                    for (name, domain), value in zip(names, values, strict=True)
                    if domain in ("", row.get("domain"))
                },
            }
            for row, text, tokens, end, reward, values in zip(
                rows, texts, sampled.said, ended, totals, rewards.tolist(), strict=True
            )
        ]
        return cast(list[Record], lines)

    def require_judged(self, rewards: Tensor, rows: list[Row]) -> None:
        """Raise UserError if a learned reward is NaN. Another reward may be NaN, which means no reward.

        `rewards`: (completions, functions), of this process's `rows`.
        """
        for column, name in enumerate(self.trainer.reward_func_names):
            reward, domain = split(name)
            if reward in LEARNED:  # a learned reward's NaN is a fault, not the absence of a reward
                judged = [place for place, row in enumerate(rows) if domain in ("", row.get("domain"))]
                lost = rewards[judged, column].isnan().any()
                if self.trainer.accelerator.gather(lost).any():
                    stop_unless_finite(f"reward {name}", math.nan, self.trainer)


def every_completion(trainer: Any, names: Sequence[str], weights: Tensor, rewards: Tensor) -> None:
    """Raise UserError if a reward is infinite, or if a completion has no reward.

    `rewards`: (completions, functions), NaN where a function gives no reward.
    """
    for name, column in zip(names, rewards.T, strict=True):
        if torch.isinf(column).any():
            stop_unless_finite(f"reward {name}", math.inf, trainer)
    if rewards.isnan().all(dim=1).any():
        stop_unless_finite("reward", math.nan, trainer)


def every_weighted_reward(trainer: Any, names: Sequence[str], weights: Tensor, rewards: Tensor) -> None:
    """Raise UserError unless the rewards whose weight is not 0 are finite.

    `rewards`: (completions, functions).
    """
    for name, weight, column in zip(names, weights.tolist(), rewards.T, strict=True):
        if weight:
            stop_unless_finite(f"reward {name}", column.sum(), trainer)
