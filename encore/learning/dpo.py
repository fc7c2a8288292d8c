"""TRL's DPOTrainer with exact resume, on pairs that we tokenise, in batches of like length.

Direct preference optimisation (Rafailov et al. 2023, arXiv 2305.18290, Eq. 7) minimises the following loss
over pairs of a chosen completion y_w and a rejected completion y_l of a prompt x:

    -log sigmoid( beta log pi(y_w|x)/pi_ref(y_w|x) - beta log pi(y_l|x)/pi_ref(y_l|x) )

log pi(y|x) is a sum over the tokens of y, not a mean. beta log pi/pi_ref is the policy's implicit reward.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trl import DPOTrainer
from trl.trainer import dpo_trainer

from encore.data import preferences
from encore.data.token_ids import prompt_ids, reply_ids
from encore.learning.counted import BesideReference
from encore.learning.reference import by_layers
from encore.learning.tiles import narrow_tiles

TokenPair = dict[str, list[int]]  # prompt_ids, chosen_ids, rejected_ids
KNOWN = "ref_chosen_logps"  # TRL's column of the chosen completion's log pi_ref


def tokenise(pairs: Sequence[preferences.Pair], tokenizer: Any) -> list[TokenPair]:
    """Return the token ids of each pair, with prompt and completions apart.

    A completion that came to its end has the end-of-sequence token, which is preferred or not like the other
    tokens. A truncated completion has none.
    """
    prompts = prompt_ids([pair["prompt"] for pair in pairs], tokenizer)
    chosen = reply_ids([p["chosen"] for p in pairs], [p["chosen_truncated"] for p in pairs], tokenizer)
    rejected = reply_ids([p["rejected"] for p in pairs], [p["rejected_truncated"] for p in pairs], tokenizer)
    return [
        {"prompt_ids": prompt, "chosen_ids": better, "rejected_ids": worse}
        for prompt, better, worse in zip(prompts, chosen, rejected, strict=True)
    ]


def length(pair: TokenPair) -> int:
    """Return the number of tokens in the prompt and the longer completion."""
    return len(pair["prompt_ids"]) + max(len(pair["chosen_ids"]), len(pair["rejected_ids"]))


def without_reference(pairs: Sequence[TokenPair], margin: float) -> list[dict[str, Any]]:
    """Return the pairs with log pi_ref = 0, or with `margin` for each token of the chosen completion.

    With the margin TRL's loss `sigmoid_norm` is SimPO (Meng et al. 2024, arXiv 2405.14734, Eq. 6), whose
    gamma is beta times the margin.
    """
    return [
        {**pair, "ref_chosen_logps": margin * len(pair["chosen_ids"]), "ref_rejected_logps": 0.0}
        for pair in pairs
    ]


class DPO(BesideReference, DPOTrainer):
    """A DPOTrainer that can resume at any step; its datasets hold `TokenPair`s.

    If they hold log-probabilities of the reference too, no reference is asked.
    """

    def __init__(self, *, args, train_dataset, **kwargs):
        args.precompute_ref_log_probs |= KNOWN in train_dataset.column_names
        with by_layers(dpo_trainer):
            super().__init__(args=args, train_dataset=train_dataset, **kwargs)

    def _prepare_dataset(self, dataset, processing_class, args, dataset_name):
        """Return `dataset` unchanged: TRL would tokenise it otherwise, and end truncated completions."""
        return dataset

    def length(self, row: Any) -> int:
        return length(row)

    def _precompute_ref_logps(self, dataset, name, batch_size):
        if KNOWN in dataset.column_names:
            return dataset
        # TRL gives the file of a dataset in memory a random name, which differs between processes
        folder = Path(self.args.output_dir)
        dataset._get_cache_file_path = lambda mark: str(folder / f"reference-{name}-{mark}.arrow")
        with narrow_tiles(self.model):
            return super()._precompute_ref_logps(dataset, name, batch_size)
