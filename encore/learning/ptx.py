r"""PPO-ptx: documents of the pretraining corpus in the same update as a rollout (InstructGPT, Eq. 2).

The objective gains \gamma E[log \pi(x)] over documents x. Here log \pi is the mean over the tokens that carry
a loss in a micro-batch, as in pretraining, and then the mean over the micro-batches of an update.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from encore.data import corpora, hub
from encore.data.token_ids import prompt_ids, reply_ids
from encore.errors import UserError
from encore.learning.measures import Measures
from encore.learning.minibatch import Minibatch
from encore.learning.resumable import EPOCH_STRIDE
from encore.models.packing import collate, document
from encore.objectives.grpo import Batch
from encore.recipe.base import present
from encore.recipe.kinds import ppo
from encore.runtime import health


@dataclass(frozen=True)
class Ptx:
    """Documents made by `packing.document`, with the settings by which they enter an update."""

    documents: Sequence[dict[str, list[int]]]
    coefficient: float
    batch_size: int  # documents in a micro-batch of a process
    seed: int
    padding: int  # id of the padding token

    def batch(self, number: int) -> dict[str, torch.Tensor]:
        """Return the documents of micro-batch `number`: `input_ids` and `labels`, (batch, time)."""
        chosen = indices(number, self.batch_size, len(self.documents), self.seed)
        return collate([self.documents[i] for i in chosen], self.padding)

    def loss(self, model: Any, number: int) -> torch.Tensor:
        r"""Return -log \pi, in nats per token, of micro-batch `number` under a causal language model."""
        device = next(model.parameters()).device
        return model(**{name: value.to(device) for name, value in self.batch(number).items()}).loss


class PtxLoss:
    """The pretraining loss that a trainer adds to the loss of each micro-batch."""

    def __init__(self, ptx: Ptx, trainer: Any, measures: Measures):
        self.ptx, self.trainer, self.measures = ptx, trainer, measures

    def loss(self, model: Any, minibatch: Minibatch, batch: Batch) -> torch.Tensor:
        """Return what a micro-batch adds to the loss of an optimizer step, (), weighted by `coefficient`."""
        accelerator = self.trainer.accelerator
        number = self.trainer._step * accelerator.num_processes + accelerator.process_index
        with accelerator.autocast():
            pretraining = self.ptx.loss(model, number)
        self.measures.add_mean("ptx_loss", pretraining)
        return self.ptx.coefficient * pretraining / batch.micro_batches


def indices(number: int, size: int, count: int, seed: int) -> list[int]:
    """Return the indices of the `size` documents in batch `number` of an endless stream of `count` documents.

    Each epoch of the stream is in a random order. The indices depend on the arguments alone, so that a
    resumed run continues where the killed run stopped.
    """
    batch: list[int] = []
    place = number * size
    while len(batch) < size:
        epoch, start = divmod(place + len(batch), count)
        generator = torch.Generator().manual_seed(seed + EPOCH_STRIDE * (epoch + 1))
        order = torch.randperm(count, generator=generator)
        batch += order[start : start + size - len(batch)].tolist()
    return batch


def read_documents(said: ppo.Ptx, tokenizer: Any, seed: int, parts: int = 1) -> Ptx:
    """Return the documents that a stage's key `ptx` names, in batches for one of `parts` processes.

    The processes share the `batch_size`. Raises UserError if `batch_size` cannot be divided among them, if
    the tokenizer does not know a text, or if a Hub dataset is not as the recipe describes it.
    """
    size, rest = divmod(said.batch_size, parts)
    if rest:
        near = max(1, round(said.batch_size / parts)) * parts
        raise UserError(
            f"ptx.batch_size: {said.batch_size} documents do not divide among {parts} micro-batches; "
            f"nearest: {near}"
        )
    if said.data:
        cut = tokenizer(texts(said.data), truncation=True, max_length=said.data.max_length)
        documents = [document([], ids) for ids in cut["input_ids"]]
    else:
        documents = [document(*pair) for pair in _halves(said, tokenizer, seed)]
    return Ptx(documents, said.coefficient, size, seed, tokenizer.pad_token_id)


def _halves(said: ppo.Ptx, tokenizer: Any, seed: int) -> list[tuple[list[int], list[int]]]:
    """Return the token ids of each document of a world's corpus: the prompt, without a loss, and the rest."""
    pairs = corpora.documents(present(said.task), present(said.template), present(said.corpus), seed)
    known = health.known_tokens(tokenizer, [prompt + rest for prompt, rest in pairs], "document of ptx")
    health.stop_at_errors([known])
    prompts = prompt_ids([prompt for prompt, _ in pairs], tokenizer)
    rests = reply_ids([rest for _, rest in pairs], [False] * len(pairs), tokenizer)
    return [*zip(prompts, rests, strict=True)]


def texts(data: ppo.HubDocuments) -> list[str]:
    """Return the first `documents` texts of a Hub dataset, or of a local folder of the same layout."""
    try:
        rows = hub.load(data, ("text",))
    except UserError as error:
        raise UserError(f"ptx.data.{str(error).removeprefix('task.')}") from None
    if len(rows) < data.documents:
        raise UserError(f"ptx.data.documents: {data.documents} asked for, but {data.name} has {len(rows)}")
    return [str(text) for text in rows[: data.documents][data.text]]
