"""Exact resume of the counts that TRL's trainers keep for SFT, reward models and DPO."""

from typing import Any

from encore.learning.language_model import InWindows
from encore.learning.reference import Reference
from encore.learning.resumable import Part, State

TIMES = ("eval_runtime", "eval_samples_per_second", "eval_steps_per_second", "eval_model_preparation_time")


class Counts:
    """The tokens that a trainer of TRL has counted so far, and its metrics since the last log line."""

    def __init__(self, trainer: Any):
        self.trainer = trainer

    def state(self) -> State:
        unlogged = {name: list(values) for name, values in self.trainer._metrics["train"].items()}
        return {"tokens": self.trainer._total_train_tokens, "unlogged": unlogged}

    def restore(self, state: State) -> None:
        self.trainer._total_train_tokens = state["tokens"]
        self.trainer._metrics["train"].clear()
        self.trainer._metrics["train"].update(state["unlogged"])


class Counted(InWindows):
    """A mixin for a trainer of TRL that counts tokens and averages its metrics between two log lines."""

    _total_train_tokens: int

    def held(self) -> dict[str, Part]:
        return {**super().held(), "counts": Counts(self)}

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        self.state.num_input_tokens_seen = self._total_train_tokens
        return loss

    def log(self, logs, start_time=None):
        # times are left out, so that a repeated run logs the same numbers
        super().log({name: value for name, value in logs.items() if name not in TIMES}, start_time)


class BesideReference(Counted):
    """A mixin for a trainer of TRL that has a reference; a checkpoint keeps one that follows the policy."""

    ref_model: Any

    def held(self) -> dict[str, Part]:
        synced = self.ref_model is not None and self.args.sync_ref_model
        return {**super().held(), "reference": Reference(self.ref_model, synced)}
