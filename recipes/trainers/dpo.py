"""TRL's DPOTrainer with exact resume, on pairs that are tokenised already, in batches of like length.

Direct preference optimisation (Rafailov et al. 2023, arXiv 2305.18290, Eq. 7) minimises over pairs of a
chosen completion y_w and a rejected y_l of a prompt x

    -log sigmoid( beta log pi(y_w|x)/pi_ref(y_w|x) - beta log pi(y_l|x)/pi_ref(y_l|x) )

log pi(y|x) is a sum over the tokens of y, not a mean. beta log pi/pi_ref is the policy's implicit reward.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trl import DPOTrainer

from recipes.trainers.counted import Counted
from recipes.trainers.language_model import sorted_windows

Pair = dict[str, list[int]]  # prompt_ids, chosen_ids, rejected_ids


def tokenise(pairs: Sequence[Mapping[str, Any]], tokenizer: Any) -> list[Pair]:
    """Prompt and completions apart, as when they were sampled: no token may span the two.

    A completion that came to its end has the end of sequence, which is preferred or not as its other tokens
    are; one that was cut (`chosen_truncated`, `rejected_truncated`) has none.
    """
    prompts = tokenizer([pair["prompt"] for pair in pairs])["input_ids"]
    found: list[Pair] = [{"prompt_ids": ids} for ids in prompts]
    for name in ("chosen", "rejected"):
        replies = tokenizer([pair[name] for pair in pairs], add_special_tokens=False)["input_ids"]
        for pair, ids, made in zip(pairs, replies, found, strict=True):
            end = [] if pair.get(f"{name}_truncated") else [tokenizer.eos_token_id]
            made[f"{name}_ids"] = [*ids, *end]
    return found


def length(pair: Pair) -> int:
    """Tokens of the prompt and the longer completion."""
    return len(pair["prompt_ids"]) + max(len(pair["chosen_ids"]), len(pair["rejected_ids"]))


class DPO(Counted, DPOTrainer):
    """DPOTrainer, resumable at any step; its datasets hold `Pair`s."""

    args: Any
    ref_model: Any

    def _prepare_dataset(self, dataset, processing_class, args, dataset_name):
        """As it is: TRL would tokenise prompt and completion as one text, and end what was cut."""
        return dataset

    def _get_train_sampler(self, dataset: Any = None):
        data: Any = self.train_dataset if dataset is None else dataset
        return sorted_windows([length(pair) for pair in data], self.args)

    def _precompute_ref_logps(self, dataset, name, batch_size):
        # TRL's file of a dataset in memory has a random name, another one in each process
        folder = Path(self.args.output_dir)
        dataset._get_cache_file_path = lambda mark: str(folder / f"reference-{name}-{mark}.arrow")
        return super()._precompute_ref_logps(dataset, name, batch_size)

    def held_state(self) -> dict[str, Any]:
        synced = self.ref_model is not None and self.args.sync_ref_model
        return {**super().held_state(), "reference": self.ref_model.state_dict() if synced else None}

    def restore_held_state(self, state: dict[str, Any]) -> None:
        super().restore_held_state(state)
        if state["reference"] is not None:
            self.ref_model.load_state_dict(state["reference"])
