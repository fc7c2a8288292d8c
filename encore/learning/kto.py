"""TRL's KTOTrainer with exact resume, on completions that we tokenise, in batches of like length.

Kahneman-Tversky optimisation (Ethayarajh et al. 2024, arXiv 2402.01306, §4.1) needs no pairs: a completion is
desirable or undesirable. With r = log pi(y|x) - log pi_ref(y|x) the loss is the mean over completions of

    w_D (1 - sigmoid(beta (r - z)))    of a desirable completion
    w_U (1 - sigmoid(beta (z - r)))    of an undesirable completion

z estimates the KL divergence of pi from pi_ref, and has no gradient. It is the mean, over the rows of a
micro-batch, of r of the row's prompt with another row's completion, or 0 if the mean is negative.
"""

from collections.abc import Sequence
from typing import Any

from trl import KTOTrainer
from trl.trainer.kto_trainer import DataCollatorForUnpairedPreference

from encore.learning.counted import BesideReference
from encore.learning.dpo import TokenPair

Completion = dict[str, Any]  # prompt_ids and completion_ids, both list[int], and label, a bool


def completions(pairs: Sequence[TokenPair]) -> list[Completion]:
    """Return both completions of each pair: the chosen one is desirable, the rejected one is not."""
    return [completion for pair in pairs for completion in _both(pair)]


def single_completions(pairs: Sequence[TokenPair]) -> list[Completion]:
    """Return one completion of each pair: the chosen one of the first, the rejected one of the second."""
    return [_both(pair)[number % 2] for number, pair in enumerate(pairs)]


def _both(pair: TokenPair) -> list[Completion]:
    """Return the chosen completion of a pair, then the rejected one."""
    return [
        {"prompt_ids": pair["prompt_ids"], "completion_ids": pair[f"{name}_ids"], "label": name == "chosen"}
        for name in ("chosen", "rejected")
    ]


class WithCompletionBefore(DataCollatorForUnpairedPreference):
    """TRL's collator, which here gives each row of a micro-batch the completion of the row before it.

    TRL does so once, before training, and can therefore not change the order of the rows.
    """

    def torch_call(self, examples):
        before = [examples[-1], *examples[:-1]]
        return super().torch_call(
            [
                {**row, "KL_completion_ids": other["completion_ids"]}
                for row, other in zip(examples, before, strict=True)
            ]
        )


class KTO(BesideReference, KTOTrainer):
    """A KTOTrainer that can resume at any step; its datasets hold `Completion`s."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.data_collator = WithCompletionBefore(**vars(self.data_collator))

    def _prepare_dataset(self, dataset, processing_class, args, dataset_name):
        """Return `dataset` unchanged: TRL would tokenise it otherwise, and end truncated completions."""
        return dataset

    def length(self, row: Any) -> int:
        return len(row["prompt_ids"]) + len(row["completion_ids"])
