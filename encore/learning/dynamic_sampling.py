r"""Dynamic sampling of DAPO (arXiv 2503.14476, §3.2): rollouts of groups with right and wrong answers.

Eq. 11 maximises DAPO's objective subject to

    0 < |{o_i : o_i is correct}| < G        for every prompt of the batch,

because a group all right or all wrong has equal rewards and so no advantage. Rounds of fresh prompts are
sampled until the rollout is full of such mixed groups. As in the authors' code (verl,
`filter_groups.metric=acc`), the accuracy reward decides what is correct, whatever else is rewarded; surplus
mixed groups of the last round are dropped; and the number of rounds is bounded. A round has as many prompts
as the rollout needs groups (in the authors' code three times as many). When the rounds are used up, the
authors' code stops. Here a rollout with at least one mixed group is filled up with other groups, whose
advantage is set to 0, and counted as `dynamic/underfull`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object

from encore.errors import UserError
from encore.learning.completions import correct
from encore.learning.grpo import GRPO
from encore.learning.resume import EPOCH_STRIDE, last_checkpoint

Rollout = dict[str, Any]  # name -> tensor (batch, …), list (batch,), one number for all, or None
TOKENS = "num_items_in_batch"  # completion tokens in the loss, of the rollout of all processes


def prompts_of(number: int, prompts: int, available: int, seed: int, shuffle: bool = True) -> list[int]:
    """Indices of the `prompts` prompts of round `number`, counted from 0 over all of the run.

    They are in PromptSampler's order: a permutation in each epoch, without the last prompts where these do
    not fill a round. So the first round has the prompts of a run without dynamic sampling.
    """
    epoch, place = divmod(number, available // prompts)
    generator = torch.Generator().manual_seed(seed + EPOCH_STRIDE * epoch)
    order = torch.randperm(available, generator=generator) if shuffle else torch.arange(available)
    return order[place * prompts : (place + 1) * prompts].tolist()


def select(rollout: Rollout, groups: Sequence[int], size: int) -> Rollout:
    """The rows of these groups, of `size` rows each, in this order."""
    rows = [group * size + i for group in groups for i in range(size)]

    def of(name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.ndim:
            return value[rows]
        if isinstance(value, list):
            return [value[row] for row in rows]
        if value is None or name == TOKENS:
            return value
        raise ValueError(f"dynamic sampling cannot select rows of {name}: {type(value).__name__}")

    return {name: of(name, value) for name, value in rollout.items()}


def join(rollouts: Sequence[Rollout], pad_token: int) -> Rollout:
    """The rows of all `rollouts`, one after another, in a rectangle no wider than its longest row.

    Prompts are padded on the left, all else on the right; ids with `pad_token`, other tensors with 0.
    """

    def of(name: str, values: list[Any]) -> Any:
        if isinstance(values[0], list):
            return [row for value in values for row in value]
        if not isinstance(values[0], torch.Tensor) or not values[0].ndim:
            return values[-1]
        if values[0].ndim > 1:
            width = max(value.shape[1] for value in values)
            fill = pad_token if name.endswith("_ids") else 0
            values = [_widen(value, width, fill, left=name.startswith("prompt_")) for value in values]
        return torch.cat(values)

    joined = {name: of(name, [rollout[name] for rollout in rollouts]) for name in rollouts[0]}
    return _trim(joined, pad_token)


def _widen(tensor: torch.Tensor, width: int, fill: int, left: bool) -> torch.Tensor:
    """(batch, time, …) -> (batch, width, …)"""
    missing = tensor.new_full((tensor.shape[0], width - tensor.shape[1], *tensor.shape[2:]), fill)
    return torch.cat([missing, tensor] if left else [tensor, missing], dim=1)


def _trim(rollout: Rollout, pad_token: int) -> Rollout:
    """`rollout` without the columns in which every row is padding."""
    prompt = int(rollout["prompt_mask"].sum(dim=1).max())
    # not by the mask, which is 0 all along a truncated completion that is left out of the loss
    real = (rollout["completion_ids"] != pad_token) | (rollout["completion_mask"] != 0)
    completion = int(real.any(dim=0).nonzero().max()) + 1

    def of(name: str, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.ndim < 2:
            return value
        if name.startswith("prompt_"):
            return value[:, -prompt:]
        return value[:, :completion] if value.shape[1] == real.shape[1] else value

    return {name: of(name, value) for name, value in rollout.items()}


class DynamicSampling(GRPO):
    """GRPO on mixed groups; its prompts come from a cursor of its own instead of the dataloader."""

    max_rounds: int
    train_dataset: Any
    shuffle_dataset: Any
    rounds_drawn = 0  # the cursor: later prompts depend on nothing else

    def held_state(self) -> dict[str, Any]:
        return {**super().held_state(), "rounds_drawn": self.rounds_drawn}

    def restore_held_state(self, state: dict[str, Any]) -> None:
        super().restore_held_state(state)
        self.rounds_drawn = state["rounds_drawn"]

    def fresh(self, groups: int) -> list[dict[str, Any]]:
        """The next rows for this process, each prompt `num_generations` times."""
        processes, own = self.accelerator.num_processes, self.accelerator.process_index * groups
        chosen = prompts_of(
            self.rounds_drawn,
            groups * processes,
            len(self.train_dataset),
            self.args.seed,
            self.shuffle_dataset,
        )
        self.rounds_drawn += 1
        rows = [self.train_dataset[index] for index in chosen[own : own + groups]]
        return [dict(row) for row in rows for _ in range(self.num_generations)]

    def record(self, rows: list[dict[str, Any]]) -> None:
        """Keep the rows of a round until it is known which of them are used."""
        self._rounds.append(rows)

    def _generate_and_score_completions(self, inputs):
        """A rollout full of mixed groups, or after `max_rounds` one whose last groups have no advantage.

        Each process fills its own part. One that is full goes on sampling with the others and keeps nothing.
        Raises UserError where no process has sampled a mixed group.
        """
        if not self.model.training:
            return super()._generate_and_score_completions(inputs)
        size = self.num_generations
        needed, rest = divmod(len(inputs), size)
        if rest:
            raise UserError(
                f"dynamic_sampling: a process samples {len(inputs)} completions, no whole groups of {size}; "
                "change per_device_train_batch_size or steps_per_generation"
            )
        self._rounds: list[list[dict[str, Any]]] = []
        parts: list[Rollout] = []
        mixed_groups, flags = 0, []
        while True:
            sampled = super()._generate_and_score_completions(self.fresh(needed))
            right = [correct(row) for row in self._rollout_rows]
            mixed = [0 < sum(right[i : i + size]) < size for i in range(0, len(right), size)]
            kept = [group for group, is_mixed in enumerate(mixed) if is_mixed][: needed - mixed_groups]
            flags.append([group in kept for group in range(needed) for _ in range(size)])
            parts.append(select(sampled, kept, size))
            mixed_groups += len(kept)
            counts = gather_object([mixed_groups])
            if min(counts) == needed or len(parts) == self.max_rounds:
                break
        rows = [row for round_rows in self._rounds for row in round_rows]
        for row, flag in zip(rows, [f for own in flags for f in gather_object(own)], strict=True):
            row["kept"] = flag
        if not sum(counts):
            raise UserError(self.nothing_to_learn(rows))
        if mixed_groups < needed:  # the last round alone has enough others
            others = [group for group in range(needed) if not mixed[group]]
            filler = select(sampled, others[: needed - mixed_groups], size)
            parts.append({**filler, "advantages": torch.zeros_like(filler["advantages"])})
        self._metrics["train"]["dynamic/rounds"].append(float(len(flags)))
        self._metrics["train"]["dynamic/kept"].append(sum(counts) * size / len(rows))
        self._metrics["train"]["dynamic/underfull"].append(float(min(counts) < needed))
        super().record(rows)
        return join([part for part in parts if len(part["advantages"])], self._tokenizer.pad_token_id)

    def nothing_to_learn(self, rows: list[dict[str, Any]]) -> str:
        """The error message where none of the groups in `rows`, those of all rounds, is mixed."""
        size, good = self.num_generations, last_checkpoint(Path(self.args.output_dir))
        groups = len(rows) // size
        solved = sum(correct(row) for row in rows[::size]) / groups
        return (
            f"step {self.state.global_step + 1}: dynamic sampling found no group of mixed outcome in "
            f"{self.max_rounds} rounds of {groups // self.max_rounds} prompts: {solved:.0%} of the groups "
            f"are all right, {1 - solved:.0%} all wrong; last good checkpoint: {good or 'none'}; take "
            f"{'harder' if solved > 0.5 else 'easier'} problems, more samples a group (num_generations) "
            "or more rounds (dynamic_sampling.max_rounds)"
        )
