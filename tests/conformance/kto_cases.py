"""Watches the stage `kto` at work, and puts what it did beside what its paper says, in float64.

KTO, Ethayarajh et al. 2024, arXiv 2402.01306, §4.1. The estimate of the KL is a mean over a micro-batch, each
prompt with the completion of the row before, and is no less than 0. The reference knows nothing of TRL:
log-probabilities come from a plain forward pass of one unpadded row.
"""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import observe
import torch
from compare import Outcome, Reader
from dpo_cases import BETA, Seen, arguments, inputs, rows_of
from torch import Tensor

# micro-batch size, gradient accumulation, steps
LAYOUTS = {"one-batch": (8, 1, 3), "accumulated": (4, 2, 3), "two-rows": (2, 3, 3)}
WEIGHTS = {"even": (1.0, 1.0), "uneven": (0.5, 1.5)}  # of desirable and of undesirable completions

Row = tuple[tuple[int, ...], tuple[int, ...], bool]  # prompt, completion, whether it is desirable


def read(batch: dict[str, Tensor]) -> Iterator[tuple[Row, ...]]:
    """The rows of a micro-batch, together, because its KL is."""
    labels = batch["label"].tolist()
    yield tuple((*row, bool(label)) for row, label in zip(rows_of(batch), labels, strict=True))


@functools.cache
def watch(folder: Path, case: str, layout: str, unpaired: bool = False) -> Seen:
    """What the stage did with the weights of a case in a layout."""
    from encore.stages import kto

    weights = dict(zip(("desirable_weight", "undesirable_weight"), WEIGHTS[case], strict=True))
    config: dict[str, Any] = {"pairs": "all", "unpaired": unpaired}
    config["args"] = {**arguments(*LAYOUTS[layout]), **weights}
    return observe.trained(kto, config, inputs(folder), folder, lambda trainer: Seen(trainer, read))


def loss_of(ratios: list[Tensor], labels: list[bool], kl: Tensor, weights: tuple[float, float]) -> Tensor:
    """The mean loss of a micro-batch, from log pi/pi_ref of each completion, and the estimate of the KL."""
    terms = [
        weights[0] * (1 - torch.sigmoid(BETA * (ratio - kl)))
        if desirable
        else weights[1] * (1 - torch.sigmoid(BETA * (kl - ratio)))
        for ratio, desirable in zip(ratios, labels, strict=True)
    ]
    return torch.stack(terms).mean()


def judge(seen: Seen, weights: tuple[float, float], folder: Path, floor: float = 0.0) -> list[Outcome]:
    """Value and gradient of each optimizer step beside those of a reference, and `floor` of the KL."""
    reader, outcomes = Reader(observe.model(folder)), []
    for at, batches, value, gradient in zip(
        seen.weights, seen.examples, seen.losses, seen.gradients, strict=True
    ):
        others = [
            [(prompt, before[1]) for (prompt, _, _), before in zip(batch, (batch[-1], *batch), strict=False)]
            for batch in batches
        ]
        matched = [[(prompt, completion) for prompt, completion, _ in batch] for batch in batches]
        anchor = reader.fixed(seen.reference, [row for rows in (*others, *matched) for row in rows])
        reader.load(at)

        def ratio(prompt: tuple[int, ...], completion: tuple[int, ...], anchor: Any = anchor) -> Tensor:
            return reader.read([*prompt], [*completion])[0].sum() - anchor[prompt, completion].sum()

        losses = []
        for batch, mismatched, rows in zip(batches, others, matched, strict=True):
            kl = torch.stack([ratio(*row) for row in mismatched]).mean().detach().clamp(min=floor)
            labels = [desirable for _, _, desirable in batch]
            losses.append(loss_of([ratio(*row) for row in rows], labels, kl, weights))
        expected = torch.stack(losses).mean()
        expected.backward()
        outcomes.append(Outcome(value, expected.item(), gradient, reader.gradient()))
    return outcomes
