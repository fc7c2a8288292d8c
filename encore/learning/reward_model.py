"""TRL's RewardTrainer with InstructGPT's K-wise loss, exact resume, and scores read at the last real token.

A labeller ranks K responses y to a prompt x. InstructGPT (Ouyang et al. 2022, arXiv 2203.02155, Eq. 1) then
minimises

    loss = -1/C(K,2) E_x sum over pairs (w better than l) log sigmoid( r(x, y_w) - r(x, y_l) )

with all C(K,2) pairs of a prompt in one batch element (§3.5): each response is read once, in one update. With
the pairs shuffled into one data set instead, each response is in K-1 updates of an epoch, and the paper's
models overfit. Either way a data set consists of elements: K sequences with all their pairs, or 2 with one.
"""

from collections.abc import Sequence
from types import MethodType
from typing import Any

import torch
from trl import RewardTrainer

from encore.learning.counted import Counted
from encore.learning.language_model import sorted_windows
from encore.models.language_model import disable_dropout
from encore.models.packing import in_order, padded, within_positions
from encore.models.reward_model import at_last_token
from encore.objectives.losses import k_wise

Element = dict[
    str, Any
]  # sequences: K lists of token ids; better, worse: of each pair, its places among them


def grouped(sequences: Sequence[Sequence[int]], pairs: Sequence[tuple[int, int]]) -> list[Element]:
    """All `pairs` (better, worse) of a prompt's `sequences` as one element."""
    return [
        {
            "sequences": [list(one) for one in sequences],
            "better": [better for better, _ in pairs],
            "worse": [worse for _, worse in pairs],
        }
    ]


def shuffled(sequences: Sequence[Sequence[int]], pairs: Sequence[tuple[int, int]]) -> list[Element]:
    """Each of `pairs` (better, worse) as an element of its own; the sampler's order shuffles them."""
    return [
        {"sequences": [list(sequences[better]), list(sequences[worse])], "better": [0], "worse": [1]}
        for better, worse in pairs
    ]


def collate(elements: Sequence[Element]) -> dict[str, torch.Tensor]:
    """A batch: the sequences of all elements one below another, and all their pairs.

    `input_ids` (rows, time), padded on the right; `last` (rows,): place of the last token; `better`, `worse`
    (pairs,): rows; `weight` (pairs,): 1 / (elements x pairs of its element), so that weights sum to 1.
    """
    better, worse, weight, above = [], [], [], 0
    for element in elements:
        better += [above + i for i in element["better"]]
        worse += [above + i for i in element["worse"]]
        weight += [1 / (len(elements) * len(element["better"]))] * len(element["better"])
        above += len(element["sequences"])
    ids, last = padded([one for element in elements for one in element["sequences"]])
    return {
        "input_ids": ids,
        "last": last,
        "better": torch.tensor(better),
        "worse": torch.tensor(worse),
        "weight": torch.tensor(weight),
    }


class Reward(Counted, RewardTrainer):
    """RewardTrainer on data sets of `Element`s, resumable at any step."""

    args: Any
    model: Any
    _signature_columns: Any

    def __init__(self, model: Any, *, args: Any, **options: Any):
        if args.disable_dropout:
            disable_dropout(model)
        # DistributedDataParallel calls `forward`; transformers' own guesses the last token from padding
        model.forward = MethodType(at_last_token, model)
        super().__init__(model=model, args=args, data_collator=collate, **options)

    def _prepare_dataset(self, dataset, processing_class, args, dataset_name):
        """`dataset` unchanged: TRL expects pairs, and would add an end of sequence to what was cut."""
        return dataset

    def _set_signature_columns_if_needed(self):
        self._signature_columns = ["sequences", "better", "worse"]

    def _get_train_sampler(self, dataset: Any = None):
        data: Any = self.train_dataset if dataset is None else dataset
        return sorted_windows([max(map(len, one)) for one in data["sequences"]], self.args)

    def scores(self, model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """r (rows,), from pieces of rows of like length, so that little is padded."""
        ids, last = batch["input_ids"], batch["last"]
        if self.accelerator.num_processes > 1:  # all must call the model equally often
            return model(ids, last)
        pieces = within_positions((last + 1).tolist(), ids.numel())
        scores = [model(ids[piece, : int(last[piece].max()) + 1], last[piece]) for piece in pieces]
        return in_order(scores, [torch.tensor(piece) for piece in pieces])

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        rewards = self.scores(model, inputs)
        loss = k_wise(rewards, inputs, self.args.center_rewards_coefficient)
        with torch.no_grad():
            self.measure("train" if self.model.training else "eval", rewards, inputs)
        return (loss, {"rewards": rewards}) if return_outputs else loss

    def measure(self, mode: str, rewards: torch.Tensor, batch: dict[str, torch.Tensor]) -> None:
        """Log TRL's metrics of a micro-batch; accuracy and margin have the weights of the loss."""
        rewards = rewards.double()
        gap = rewards[batch["better"]] - rewards[batch["worse"]]  # (pairs,)
        right = (gap > 0).double() + (gap == 0).double() / 2
        own = torch.stack(
            [
                rewards.min(),
                rewards.mean(),
                rewards.max(),
                (batch["weight"] * right).sum(),
                (batch["weight"] * gap).sum(),
                (batch["last"] + 1).sum(),
            ]
        )
        least, mean, most, accuracy, margin, tokens = self.accelerator.gather(own[None]).unbind(dim=1)
        kept = self._metrics[mode]
        if mode == "train":
            self._total_train_tokens += int(tokens.sum())
            kept["num_tokens"] = [self._total_train_tokens]
        kept["min_reward"].append(least.min().item())
        kept["max_reward"].append(most.max().item())
        for name, values in (("mean_reward", mean), ("accuracy", accuracy), ("margin", margin)):
            kept[name].append(values.mean().item())
