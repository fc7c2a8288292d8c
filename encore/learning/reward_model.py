"""TRL's RewardTrainer on comparisons or on labels, with exact resume, and scores read at real tokens.

**Comparisons.** A labeller ranks K responses y to a prompt x. InstructGPT (Ouyang et al. 2022, arXiv
2203.02155, Eq. 1) then minimises

    loss = -1/C(K,2) E_x sum over pairs (w better than l) log sigmoid( r(x, y_w) - r(x, y_l) )

with all C(K,2) pairs of a prompt in one batch element (§3.5): each response is read once, in one update. If
the pairs are shuffled into one data set instead, each response is in K-1 updates of an epoch, and the paper's
models overfit. Either way a data set consists of elements: K sequences with all their pairs, or 2 sequences
with one pair.

**Labels.** A process reward model (Lightman et al. 2023, arXiv 2305.20050, §2.6; Wang et al. 2023,
Math-Shepherd, arXiv 2312.08935, §3.2) reads a score r at the last token of every step; sigmoid(r) is the
probability that the step is right. An outcome reward model (Cobbe et al. 2021) reads one score, at the last
token of the solution. Both minimise the binary cross-entropy of `losses.right_or_wrong`, each solution in one
pass. They differ in the positions that are labelled. A label between 0 and 1 is a share of roll-outs that
ended right (Math-Shepherd's soft estimation).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, ClassVar

import torch
from trl import RewardTrainer

from encore.learning.counted import Counted
from encore.models.language_model import disable_dropout
from encore.models.packing import in_order, padded, within_positions
from encore.models.reward_model import at_every_token, at_last_token
from encore.objectives.losses import k_wise, right_or_wrong

# sequences: K lists of token ids; better, worse: the numbers of each pair's sequences
Element = dict[str, Any]
# ids: token ids of prompt and completion; places: labelled positions in ids; labels: the label of each place
Solution = dict[str, Any]
Batch = dict[str, torch.Tensor]


def grouped(sequences: Sequence[Sequence[int]], pairs: Sequence[tuple[int, int]]) -> list[Element]:
    """Return all `pairs` (better, worse) of a prompt's `sequences` as one element."""
    return [
        {
            "sequences": [list(ids) for ids in sequences],
            "better": [better for better, _ in pairs],
            "worse": [worse for _, worse in pairs],
        }
    ]


def shuffled(sequences: Sequence[Sequence[int]], pairs: Sequence[tuple[int, int]]) -> list[Element]:
    """Return each of `pairs` (better, worse) as a separate element, for the sampler to shuffle."""
    return [
        {"sequences": [list(sequences[better]), list(sequences[worse])], "better": [0], "worse": [1]}
        for better, worse in pairs
    ]


def collate_comparisons(elements: Sequence[Element]) -> Batch:
    """Return a batch: the sequences of all elements one below another, and all their pairs.

    `input_ids` (rows, time) is padded on the right; `last` (rows,) is the position of each last token;
    `better` and `worse` (pairs,) are indices of rows; `weight` (pairs,) is 1 / (elements x pairs of the
    element), so that the weights sum to 1.
    """
    better, worse, weight, above = [], [], [], 0
    for element in elements:
        better += [above + i for i in element["better"]]
        worse += [above + i for i in element["worse"]]
        weight += [1 / (len(elements) * len(element["better"]))] * len(element["better"])
        above += len(element["sequences"])
    ids, last = padded([sequence for element in elements for sequence in element["sequences"]])
    return {
        "input_ids": ids,
        "last": last,
        "better": torch.tensor(better),
        "worse": torch.tensor(worse),
        "weight": torch.tensor(weight),
    }


def collate_solutions(elements: Sequence[Solution]) -> Batch:
    """Return a batch: the solutions one below another, and all their labels.

    `input_ids` (rows, time) is padded on the right; `last` (rows,) is the position of each last token. A
    label has its `row`, its position `place` and its value `label`, each (places,).
    """
    ids, last = padded([solution["ids"] for solution in elements])
    return {
        "input_ids": ids,
        "last": last,
        "row": torch.tensor([row for row, solution in enumerate(elements) for _ in solution["places"]]),
        "place": torch.tensor([place for solution in elements for place in solution["places"]]),
        "label": torch.tensor([float(label) for solution in elements for label in solution["labels"]]),
    }


class Scores(Counted, RewardTrainer, ABC):
    """A RewardTrainer that can resume at any step, on data sets that a subclass describes."""

    args: Any
    model: Any
    columns: ClassVar[tuple[str, ...]]  # columns of the data set
    _signature_columns: Any

    @abstractmethod
    def scores(self, model: Any, batch: Batch) -> torch.Tensor:
        """Return the scores r, computed in pieces of rows of similar length, which need little padding."""

    @abstractmethod
    def loss(self, scores: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the loss, (), of the scores that `scores` returned."""

    @abstractmethod
    def measure(self, mode: str, scores: torch.Tensor, batch: Batch) -> None:
        """Log TRL's metrics of a micro-batch; `mode` is train or eval."""

    def __init__(self, model: Any, forward: Callable, collate: Callable, *, args: Any, **options: Any):
        """Make a trainer. `forward` replaces the model's forward pass and returns its scores.

        `collate` makes a batch of rows of the data set.
        """
        if args.disable_dropout:
            disable_dropout(model)
        # DistributedDataParallel calls `forward`; transformers' own forward guesses the last token from the
        # padding
        model.forward = MethodType(forward, model)
        super().__init__(model=model, args=args, data_collator=collate, **options)

    def _prepare_dataset(self, dataset, processing_class, args, dataset_name):
        """Return `dataset` unchanged: TRL expects pairs, and would end truncated completions."""
        return dataset

    def _set_signature_columns_if_needed(self):
        self._signature_columns = [*self.columns]

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        scores = self.scores(model, inputs)
        loss = self.loss(scores, inputs)
        with torch.no_grad():
            self.measure("train" if self.model.training else "eval", scores, inputs)
        return (loss, {"rewards": scores}) if return_outputs else loss

    def count(self, mode: str, tokens: Any) -> Any:
        """Count the tokens of a micro-batch, and return the metrics of TRL that `measure` adds to."""
        if mode == "train":
            self._total_train_tokens += int(tokens)
            self._metrics[mode]["num_tokens"] = [self._total_train_tokens]
        return self._metrics[mode]


class Reward(Scores):
    """A trainer of a reward model on comparisons, from data sets of `Element`s."""

    columns = ("sequences", "better", "worse")

    def __init__(self, model: Any, **options: Any):
        super().__init__(model, at_last_token, collate_comparisons, **options)

    def length(self, row: Element) -> int:
        return max(map(len, row["sequences"]))

    def scores(self, model: Any, batch: Batch) -> torch.Tensor:
        """Return the score r of each sequence, (rows,)."""
        ids, last = batch["input_ids"], batch["last"]
        if self.accelerator.num_processes > 1:  # all processes must call the model equally often
            return model(ids, last)
        pieces = within_positions((last + 1).tolist(), ids.numel())
        scores = [model(ids[piece, : int(last[piece].max()) + 1], last[piece]) for piece in pieces]
        return in_order(scores, [torch.tensor(piece) for piece in pieces])

    def loss(self, scores: torch.Tensor, batch: Batch) -> torch.Tensor:
        return k_wise(scores, batch, self.args.center_rewards_coefficient)

    def measure(self, mode: str, rewards: torch.Tensor, batch: Batch) -> None:
        """Log TRL's metrics of a micro-batch; accuracy and margin have the weights of the loss."""
        rewards = rewards.double()
        gap = rewards[batch["better"]] - rewards[batch["worse"]]  # (pairs,)
        right = (gap > 0).double() + (gap == 0).double() / 2
        local = torch.stack(
            [
                rewards.min(),
                rewards.mean(),
                rewards.max(),
                (batch["weight"] * right).sum(),
                (batch["weight"] * gap).sum(),
                (batch["last"] + 1).sum(),
            ]
        )
        least, mean, most, accuracy, margin, tokens = self.accelerator.gather(local[None]).unbind(dim=1)
        kept = self.count(mode, tokens.sum())
        kept["min_reward"].append(least.min().item())
        kept["max_reward"].append(most.max().item())
        for name, values in (("mean_reward", mean), ("accuracy", accuracy), ("margin", margin)):
            kept[name].append(values.mean().item())


class StepReward(Scores):
    """A trainer of a process or outcome reward model on labels, from data sets of `Solution`s."""

    columns = ("ids", "places", "labels")

    def __init__(self, model: Any, **options: Any):
        super().__init__(model, at_every_token, collate_solutions, **options)

    def length(self, row: Solution) -> int:
        return len(row["ids"])

    def scores(self, model: Any, batch: Batch) -> torch.Tensor:
        """Return the score r at each labelled position, (places,)."""
        ids, last, row, place = (batch[name] for name in ("input_ids", "last", "row", "place"))
        if self.accelerator.num_processes > 1:  # all processes must call the model equally often
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

    def loss(self, scores: torch.Tensor, batch: Batch) -> torch.Tensor:
        return right_or_wrong(scores, batch["label"], len(batch["last"]))

    def measure(self, mode: str, scores: torch.Tensor, batch: Batch) -> None:
        """Log the share of labels predicted correctly, the share of labels above 0.5, and the mean score."""
        right, said = batch["label"] > 0.5, scores > 0
        counts = [
            (right == said).double().sum(),
            scores.double().sum(),
            right.double().sum(),
            torch.tensor(float(len(scores)), dtype=torch.float64, device=scores.device),
            (batch["last"] + 1).double().sum(),
        ]
        told, total, good, places, tokens = self.accelerator.gather(torch.stack(counts)[None]).sum(dim=0)
        kept = self.count(mode, tokens)
        for name, value in (("accuracy", told), ("mean_reward", total), ("right", good)):
            kept[name].append((value / places).item())
