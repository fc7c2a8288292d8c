"""TRL's SFTTrainer with exact resume, in batches of documents of like length."""

from typing import Any

from trl import SFTTrainer

from encore.learning.counted import Counted
from encore.learning.language_model import sorted_windows


class SFT(Counted, SFTTrainer):
    """SFTTrainer, resumable at any step."""

    def _get_train_sampler(self, dataset: Any = None):
        data: Any = self.train_dataset if dataset is None else dataset
        return sorted_windows([len(ids) for ids in data["input_ids"]], self.args)
