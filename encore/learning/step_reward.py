"""Reward models that say of each step, or of the whole solution, whether it is right.

A process reward model (Lightman et al. 2023, arXiv 2305.20050, §2.6; Wang et al. 2023, Math-Shepherd, arXiv
2312.08935, §3.2) reads a score r at the last token of every step; sigmoid(r) is its chance to be right. An
outcome reward model (Cobbe et al. 2021) reads one, at the last token of the solution. Both minimise the
binary cross-entropy of `losses.right_or_wrong`, each solution in one pass: what differs is where it is
labelled. A label between 0 and 1 is a share of roll-outs
that ended right (Math-Shepherd's soft estimation).
"""

from collections.abc import Sequence
from types import MethodType
from typing import Any

import torch
from trl import RewardTrainer

from encore.learning.counted import Counted
from encore.learning.language_model import sorted_windows
from encore.models.language_model import disable_dropout
from encore.models.packing import padded, within_positions
from encore.models.reward_model import at_every_token
from encore.objectives.losses import right_or_wrong

Solution = dict[
    str, Any
]  # ids: token ids of prompt and completion; places: into ids; labels: one of each place


def collate(solutions: Sequence[Solution]) -> dict[str, torch.Tensor]:
    """A batch: the solutions one below another, and all their labelled places.

    `input_ids` (rows, time), padded on the right; `last` (rows,): place of the last token; `row`, `place`,
    `label` (places,).
    """
    ids, last = padded([one["ids"] for one in solutions])
    return {
        "input_ids": ids,
        "last": last,
        "row": torch.tensor([row for row, one in enumerate(solutions) for _ in one["places"]]),
        "place": torch.tensor([place for one in solutions for place in one["places"]]),
        "label": torch.tensor([float(label) for one in solutions for label in one["labels"]]),
    }


class StepReward(Counted, RewardTrainer):
    """RewardTrainer on data sets of `Solution`s, resumable at any step."""

    args: Any
    model: Any
    _signature_columns: Any

    def __init__(self, model: Any, *, args: Any, **options: Any):
        if args.disable_dropout:
            disable_dropout(model)
        model.forward = MethodType(at_every_token, model)  # DistributedDataParallel calls `forward`
        super().__init__(model=model, args=args, data_collator=collate, **options)

    def _prepare_dataset(self, dataset, processing_class, args, dataset_name):
        """`dataset` unchanged: TRL expects pairs."""
        return dataset

    def _set_signature_columns_if_needed(self):
        self._signature_columns = ["ids", "places", "labels"]

    def _get_train_sampler(self, dataset: Any = None):
        data: Any = self.train_dataset if dataset is None else dataset
        return sorted_windows([len(ids) for ids in data["ids"]], self.args)

    def scores(self, model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """r (places,), from pieces of rows of like length, so that little is padded."""
        ids, last, row, place = (batch[name] for name in ("input_ids", "last", "row", "place"))
        if self.accelerator.num_processes > 1:  # all must call the model equally often
            return model(ids)[row, place]
        table = torch.zeros(ids.shape, dtype=torch.float64, device=ids.device)
        for piece in within_positions((last + 1).tolist(), ids.numel()):
            width = int(last[piece].max()) + 1
            scores = model(ids[piece, :width])  # (rows of the piece, width)
            table = table.to(scores.dtype).index_put(
                (torch.tensor(piece, device=ids.device)[:, None], torch.arange(width, device=ids.device)),
                scores,
            )
        return table[row, place]

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        scores = self.scores(model, inputs)
        loss = right_or_wrong(scores, inputs["label"], len(inputs["last"]))
        with torch.no_grad():
            self.measure("train" if self.model.training else "eval", scores, inputs)
        return (loss, {"rewards": scores}) if return_outputs else loss

    def measure(self, mode: str, scores: torch.Tensor, batch: dict[str, torch.Tensor]) -> None:
        """Log shares of places: told rightly, labelled right (above a half); and the mean score."""
        right, said = batch["label"] > 0.5, scores > 0
        counts = [
            (right == said).double().sum(),
            scores.double().sum(),
            right.double().sum(),
            torch.tensor(float(len(scores)), dtype=torch.float64, device=scores.device),
            (batch["last"] + 1).double().sum(),
        ]
        told, total, good, places, tokens = self.accelerator.gather(torch.stack(counts)[None]).sum(dim=0)
        kept = self._metrics[mode]
        if mode == "train":
            self._total_train_tokens += int(tokens)
            kept["num_tokens"] = [self._total_train_tokens]
        for name, value in (("accuracy", told), ("mean_reward", total), ("right", good)):
            kept[name].append((value / places).item())
