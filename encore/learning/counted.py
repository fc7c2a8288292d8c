"""Exact resume of the counts that TRL's trainers on fixed data keep (SFT, reward models, DPO)."""

from typing import Any

from encore.learning.resume import ExactResume
from encore.learning.tiles import narrow_tiles

TIMES = ("eval_runtime", "eval_samples_per_second", "eval_steps_per_second", "eval_model_preparation_time")


class Counted(ExactResume):
    """Mixin for a trainer of TRL that counts tokens and averages its metrics between two log lines."""

    _total_train_tokens: int
    _metrics: Any

    def held_state(self) -> dict[str, Any]:
        return {
            **super().held_state(),
            "tokens": self._total_train_tokens,
            "unlogged": {name: list(values) for name, values in self._metrics["train"].items()},
        }

    def restore_held_state(self, state: dict[str, Any]) -> None:
        super().restore_held_state(state)
        self._total_train_tokens = state["tokens"]
        self._metrics["train"].clear()
        self._metrics["train"].update(state["unlogged"])

    def train(self, *args, **kwargs):
        with narrow_tiles(self.model):
            return super().train(*args, **kwargs)

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        self.state.num_input_tokens_seen = self._total_train_tokens
        return loss

    def log(self, logs, start_time=None):
        # without TIMES, so that a repeated run logs the same
        super().log({name: value for name, value in logs.items() if name not in TIMES}, start_time)
