r"""Dynamic sampling of DAPO (arXiv 2503.14476, §3.2): rollouts of groups with right and wrong answers.

Eq. 11 maximises DAPO's objective subject to

    0 < |{o_i : o_i is correct}| < G        for every prompt of the batch,

because a group all right or all wrong has equal rewards and so no advantage. Rounds of fresh prompts are
sampled until the rollout is full of such mixed groups. As in the authors' code (verl,
`filter_groups.metric=acc`), the accuracy reward decides what is correct, whatever else is rewarded; surplus
mixed groups of the last round are dropped; and the number of rounds is bounded. A round has as many prompts
as the rollout needs groups (in the authors' code three times as many).

When the rounds are used up, the authors' code stops. Here the rollout is filled up with other groups, whose
advantage is set to 0, and counted as `dynamic/underfull`: a policy that solves its problems, or that
collapses, is trained to the end and can be evaluated. The stage stops only if its first rollout has no mixed
group, because its problems are then too hard or too easy for it.
"""

from dataclasses import replace
from typing import Any

import torch
from accelerate.utils import gather_object

from encore.errors import UserError
from encore.learning import minibatch
from encore.learning.completions import Record, correct
from encore.learning.minibatch import Minibatch
from encore.learning.prompt_order import rows_of
from encore.learning.resumable import State
from encore.learning.rollouts import Rollouts
from encore.learning.scoring import Row
from encore.recipe.metric_names import TRAINED_TOKENS


class MixedGroups(Rollouts):
    """Rollouts of mixed groups. They keep their own place in the data, apart from the dataloader's.

    The first round has the same prompts as a run without dynamic sampling.
    """

    rounds_drawn = 0  # rounds so far, which alone decide the next prompts
    trained_tokens = 0  # tokens of prompts and completions in the rollouts so far, over all processes

    def __init__(self, *parts: Any, max_rounds: int):
        super().__init__(*parts)
        self.max_rounds = max_rounds

    def collect(self, rows: list[Row]) -> Minibatch:
        """Return a rollout full of mixed groups, or after `max_rounds` a rollout filled up with other groups.

        The other groups have no advantage. Each process fills its own part; a process whose part is full goes
        on sampling with the others and keeps nothing. Raises UserError if no process has sampled a mixed
        group in the stage's first rollout.
        """
        size = self.trainer.num_generations
        needed, rest = divmod(len(rows), size)
        if rest:
            raise UserError(
                f"dynamic_sampling: a process samples {len(rows)} completions, which are no whole groups of "
                f"{size}; change per_device_train_batch_size or steps_per_generation"
            )
        parts: list[Minibatch] = []
        trained: list[Record] = []  # the records of the completions in `parts`
        mixed_groups, lines, flags = 0, [], []
        while True:
            sampled, records = self.round(rows_of(self.trainer, self.rounds_drawn, len(rows)))
            self.rounds_drawn += 1
            lines += self.gathered(records)
            right = [correct(row) for row in records]
            mixed = [0 < sum(right[i : i + size]) < size for i in range(0, len(right), size)]
            kept = [group for group, is_mixed in enumerate(mixed) if is_mixed][: needed - mixed_groups]
            flags.append([group in kept for group in range(needed) for _ in range(size)])
            parts.append(_groups(sampled, kept, size))
            trained += [records[place] for place in _places(kept, size)]
            mixed_groups += len(kept)
            counts = gather_object([mixed_groups])
            if min(counts) == needed or len(parts) == self.max_rounds:
                break
        every_flag = [flag for of_round in flags for flag in gather_object(of_round)]
        for row, flag in zip(lines, every_flag, strict=True):
            row["kept"] = flag
        is_first = self.rounds_drawn == len(flags)
        if is_first and not sum(counts):
            raise UserError(self.nothing_to_learn(lines))
        if mixed_groups < needed:  # only in the last round are there enough other groups
            others = [group for group in range(needed) if not mixed[group]][: needed - mixed_groups]
            filler = _groups(sampled, others, size)
            trained += [records[place] for place in _places(others, size)]
            parts.append(replace(filler, advantages=torch.zeros_like(filler.advantages)))
        # of the records, because the mask lacks completions that are left out of the loss
        tokens = sum(row["tokens"] for row in trained) + sum(int(part.prompt_mask.sum()) for part in parts)
        self.trained_tokens += sum(gather_object([tokens]))
        self.measures.set(TRAINED_TOKENS, self.trained_tokens)
        self.measures.add("dynamic/rounds", float(len(flags)))
        self.measures.add("dynamic/kept", sum(counts) * size / len(lines))
        self.measures.add("dynamic/underfull", float(min(counts) < needed))
        self.record(lines)
        pad_token = self.trainer.processing_class.pad_token_id
        return minibatch.joined([part for part in parts if len(part)], pad_token)

    def nothing_to_learn(self, rows: list[Record]) -> str:
        """Return the error message for `rows`, the completions of all rounds, in which no group is mixed."""
        size = self.trainer.num_generations
        groups = len(rows) // size
        solved = sum(correct(row) for row in rows[::size]) / groups
        return (
            f"step {self.trainer.state.global_step + 1}: dynamic sampling found no group of mixed outcome in "
            f"{self.max_rounds} rounds of {groups // self.max_rounds} prompts: {solved:.0%} of the groups "
            f"are all right, {1 - solved:.0%} all wrong; take "
            f"{'harder' if solved > 0.5 else 'easier'} problems, more samples a group (num_generations) "
            "or more rounds (dynamic_sampling.max_rounds)"
        )

    def state(self) -> State:
        counts = {"rounds_drawn": self.rounds_drawn, "trained_tokens": self.trained_tokens}
        return {**super().state(), **counts}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.rounds_drawn, self.trained_tokens = state["rounds_drawn"], state["trained_tokens"]


def _groups(batch: Minibatch, groups: list[int], size: int) -> Minibatch:
    """Return the completions of the chosen groups in this order; a group has `size` completions."""
    return minibatch.rows(batch, _places(groups, size))


def _places(groups: list[int], size: int) -> list[int]:
    """Return the places of the completions of the chosen groups, each of `size` completions."""
    return [group * size + place for group in groups for place in range(size)]
