"""TRL's SFTTrainer with exact resume, and batches of documents of like length."""

from typing import Any

from trl import SFTTrainer

from recipes.trainers.language_model import sorted_windows
from recipes.trainers.resume import ExactResume


class SFT(ExactResume, SFTTrainer):
    """SFTTrainer, resumable at any step."""

    _total_train_tokens: int
    _metrics: Any

    def _get_train_sampler(self, dataset: Any = None):
        data: Any = self.train_dataset if dataset is None else dataset
        return sorted_windows([len(ids) for ids in data["input_ids"]], self.args)

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

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        self.state.num_input_tokens_seen = self._total_train_tokens
        return loss
