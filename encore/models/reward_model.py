"""Reward models: a language model's backbone with a linear head, read at the last real token.

r(x, y) = (w·h(x, y) - bias) / scale, with h the hidden state at the last token of prompt and completion,
which is the end of sequence where the completion came to its end. The product of stage `reward_model` is a
folder

    reward.json {"members", "bias": [...], "scale": [...]} · the tokenizer's files · member0/ member1/ …

where `save_pretrained` of a sequence classification model with one label has written each member. The score
never depends on padding: rows are padded on the right, where a causal model's tokens do not see it, and the
position of the last token is passed along. transformers guesses it from padding tokens, which fails where the
tokenizer pads with its end of sequence.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MethodType
from typing import Any

import torch
from accelerate.utils import gather_object
from torch.nn.functional import linear
from transformers import AutoModelForSequenceClassification

from encore.data.token_ids import prompt_ids, reply_ids
from encore.errors import UserError
from encore.models import lora, pretrained
from encore.models.language_model import Source, folder_of, load_tokenizer, same_tokenizer
from encore.models.packing import distinct, padded, within_positions
from encore.models.quantized import as_stored
from encore.models.sharded import is_sharded, spread
from encore.runtime import files, gpus, sentinel
from encore.runtime.files import saving

FILE = "reward.json"
HEAD = "score"  # transformers' name for the layer that reads a score
POSITIONS = 8192  # of one forward pass, padding included


class RewardModel:
    """One or several members, their biases and scales, and the tokenizer they were trained with."""

    def __init__(
        self,
        members: Sequence[Any],
        tokenizer: Any,
        bias: Sequence[float],
        scale: Sequence[float],
        place: str,
    ):
        self.members, self.tokenizer, self.place = list(members), tokenizer, place
        self.bias, self.scale = list(bias), list(scale)
        for member in self.members:
            member.eval()

    def to(self, device: Any) -> "RewardModel":
        self.members = [member.to(device) for member in self.members]
        return self

    def spread(self) -> None:
        """Spread the weights of all members over the processes, which from here on must score together."""
        for member in self.members:
            member.forward = MethodType(at_last_token, member)
            spread(member.requires_grad_(False))

    def score(self, prompts: Sequence[str], completions: Sequence[Sequence[int]]) -> torch.Tensor:
        """Rewards (members, batch), float32 on the CPU, of completions given as token ids.

        A completion that came to its end has the end-of-sequence token as its last. Raises UserError where
        prompt and completion together have no token, or more than the model has positions.
        """
        distinct = list(dict.fromkeys(prompts))
        ids = dict(zip(distinct, prompt_ids(distinct, self.tokenizer), strict=True))
        return self.score_ids([[*ids[p], *c] for p, c in zip(prompts, completions, strict=True)])

    def score_text(
        self, prompts: Sequence[str], completions: Sequence[str], truncated: bool | Sequence[bool] = False
    ) -> torch.Tensor:
        """`score` of completions as text; `truncated`: whether (each) was cut before its end of sequence."""
        cuts = [truncated] * len(completions) if isinstance(truncated, bool) else truncated
        return self.score(prompts, reply_ids(completions, cuts, self.tokenizer))

    def score_ids(self, sequences: Sequence[Sequence[int]]) -> torch.Tensor:
        """Rewards (members, batch) of sequences of token ids; equal ones are computed once."""
        if not sequences:
            return torch.zeros(len(self.members), 0)
        rows, alone = distinct(map(tuple, sequences))
        self._check(alone)
        raw = [read(member, alone) for member in self.members]
        rewards = [(r - b) / s for r, b, s in zip(raw, self.bias, self.scale, strict=True)]
        return torch.stack(rewards)[:, rows]

    def score_places(
        self, sequences: Sequence[Sequence[int]], places: Sequence[Sequence[int]]
    ) -> list[torch.Tensor]:
        """The mean over members of the rewards (places,) at some `places` of each sequence of token ids.

        Equal sequences with equal places are computed once.
        """
        if not sequences:
            return []
        rows, alone = distinct((tuple(ids), tuple(at)) for ids, at in zip(sequences, places, strict=True))
        ids, at = zip(*alone, strict=True)
        self._check(ids)
        found = [
            [(r - b) / s for r in _read_places(member, ids, at)]
            for member, b, s in zip(self.members, self.bias, self.scale, strict=True)
        ]
        means = [torch.stack(one).mean(dim=0) for one in zip(*found, strict=True)]
        return [means[row] for row in rows]

    def same_tokenizer(self, tokenizer: Any) -> None:
        """Raise UserError unless the policy's `tokenizer` numbers all tokens as the reward model's does."""
        same_tokenizer(self.tokenizer, tokenizer, (f"the reward model {self.place}", "the policy"))

    def _check(self, sequences: Any) -> None:
        if not min(map(len, sequences)):
            raise UserError(f"reward model {self.place}: a prompt and completion without any token")
        limit = getattr(self.members[0].config, "max_position_embeddings", None)
        longest = max(map(len, sequences))
        if limit is not None and longest > limit:
            raise UserError(
                f"reward model {self.place}: prompt and completion have {longest} tokens, it has {limit} "
                "positions"
            )


def aggregated(rewards: torch.Tensor, aggregate: str) -> torch.Tensor:
    """(members, batch) -> (batch,): their mean, or their minimum (`worst`; Coste et al. 2023, §3.2)."""
    return rewards.mean(dim=0) if aggregate == "mean" else rewards.min(dim=0).values


# -- the model -----------------------------------------------------------------------------------------------


def parts(model: Any) -> tuple[Any, Any]:
    """Backbone and linear head of a sequence classification model. Raises UserError where it has none."""
    backbone, head = getattr(model, model.base_model_prefix, None), getattr(model, HEAD, None)
    if backbone is None or head is None:
        raise UserError(f"a {model.config.model_type} model has no score head; use a causal language model")
    return backbone, head


def at_last_token(model: Any, input_ids: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """Scores (rows,) of `input_ids` (rows, time), padded on the right, at the positions `last` (rows,).

    No attention mask: a causal model's real tokens never see the padding after them.
    """
    backbone, head = parts(model)
    hidden = backbone(input_ids=input_ids, use_cache=False).last_hidden_state  # (rows, time, width)
    return read_out(head, hidden[torch.arange(len(last), device=last.device), last])


def at_every_token(model: Any, input_ids: torch.Tensor) -> torch.Tensor:
    """Scores (rows, time) of `input_ids` (rows, time), padded on the right; those at padding mean nothing."""
    backbone, head = parts(model)
    return read_out(head, backbone(input_ids=input_ids, use_cache=False).last_hidden_state)


def read_out(head: Any, hidden: torch.Tensor) -> torch.Tensor:
    """The head's one output at `hidden` (..., width): (...), in float32 or better, even under autocast.

    With the 8 bits of bfloat16, scores near 8 would be 1/16 apart.
    """
    at_least = torch.promote_types(hidden.dtype, torch.float32)
    with torch.autocast(hidden.device.type, enabled=False):
        return linear(hidden.to(at_least), head.weight.to(at_least))[..., 0]


def read(model: Any, sequences: Sequence[Sequence[int]]) -> torch.Tensor:
    """Raw scores (rows,), float32 on the CPU, without gradients or dropout.

    A sharded model has `at_last_token` as its forward, and is called by all processes, equally often whatever
    each of them has to score.
    """
    scores = torch.empty(len(sequences))
    # only a sharded model's own call gathers all its weights
    score = model if is_sharded(model) else MethodType(at_last_token, model)
    for piece, found in _in_pieces(model, score, sequences):
        scores[piece] = found
    return scores


def _read_places(
    model: Any, sequences: Sequence[Sequence[int]], places: Sequence[Sequence[int]]
) -> list[torch.Tensor]:
    """Raw scores (places,) at some `places` of each sequence, as `read`; the model is not sharded."""
    scores: dict[int, torch.Tensor] = {}
    for piece, found in _in_pieces(model, lambda ids, last: at_every_token(model, ids), sequences):
        scores |= {i: row[[*places[i]]] for i, row in zip(piece, found, strict=True)}
    return [scores[i] for i in range(len(sequences))]


def _in_pieces(
    model: Any, score: Callable[..., torch.Tensor], sequences: Sequence[Sequence[int]]
) -> list[tuple[list[int], torch.Tensor]]:
    """What `score(input_ids, last)` gives for rows of like length at a time, and which rows they are."""
    device, was_training = next(model.parameters()).device, model.training
    sharded = is_sharded(model)
    quiet: Any = torch.no_grad() if sharded else torch.inference_mode()
    model.eval()
    pieces = within_positions([len(sequence) for sequence in sequences], POSITIONS)
    if sharded:
        pieces += pieces[-1:] * (max(gather_object([len(pieces)])) - len(pieces))
    found = []
    with quiet:
        for piece in pieces:
            ids, last = padded([sequences[i] for i in piece])
            found.append((piece, score(ids.to(device), last.to(device)).float().cpu()))
    model.train(was_training)
    return found


# -- files ---------------------------------------------------------------------------------------------------


def load(metrics_json: Path) -> RewardModel:
    """The reward model that an upstream stage has saved.

    Raises UserError where it is missing or changed, or where the stage has made something else.
    """
    folder, _ = sentinel.product(metrics_json)
    return _open_folder(folder, f"{metrics_json}: its stage has made no reward model")


def _open_folder(folder: Path, otherwise: str = "not a reward model") -> RewardModel:
    """The reward model in `folder`. Raises UserError, which starts with `otherwise`, where there is none."""
    try:
        facts = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{otherwise}: there is no {folder / FILE}") from None
    members = [load_member(folder, i) for i in range(facts["members"])]
    tokenizer = load_tokenizer(Source(str(folder), None, ""))
    return RewardModel(members, tokenizer, facts["bias"], facts["scale"], str(folder))


def from_policy(source: Source, tokenizer: Any, seed: int, **options: Any) -> Any:
    """A sequence classification model with the backbone of a policy and a new head N(0, 1/(d+1)).

    `source` is a causal language model of width d, `options` are from_pretrained's. The head is that of
    Stiennon et al. (2020, App. B.1), drawn with `seed`.
    """
    options = {"dtype": torch.float32, **options, "num_labels": 1}
    failing = f"model {source.place}: cannot load it"
    model = pretrained.model(AutoModelForSequenceClassification, folder_of(source), failing, **options)
    _, head = parts(model)
    drawn = torch.randn(head.weight.shape, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        head.weight.copy_(drawn / (head.in_features + 1) ** 0.5)
    model.config.pad_token_id = tokenizer.pad_token_id  # for users who score with transformers' own class
    return as_stored(model)


def load_member(folder: Path, number: int) -> Any:
    """A member's sequence classification model, in float32."""
    place = folder / f"member{number}"
    if not place.is_dir():
        raise UserError(f"reward model {folder}: no member {number}")
    failing = f"reward model {place}: cannot load it"
    return pretrained.model(AutoModelForSequenceClassification, place, failing, dtype=torch.float32)


def begin(folder: Path) -> Path:
    """An empty folder beside `folder`, for `add` and `finish` to write the reward model to."""
    partial = folder.with_name(f".{folder.name}.partial")
    if gpus.first():
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    return partial


def add(partial: Path, number: int, member: Any) -> None:
    """Write a member. All processes of a stage must call it: they gather what is sharded, one writes."""
    member, weights = lora.product(member)
    if not gpus.first():
        return
    with saving("the reward model", partial.parent):
        member.save_pretrained(partial / f"member{number}", state_dict=weights)


def finish(
    partial: Path, tokenizer: Any, bias: Sequence[float], scale: Sequence[float], folder: Path
) -> None:
    """Write tokenizer, biases and scales, one of each for a member, and move everything to `folder`."""
    if not gpus.first():
        return
    with saving("the reward model", folder.parent):
        tokenizer.save_pretrained(partial)
        facts = {"members": len(bias), "bias": list(bias), "scale": list(scale)}
        files.write_json(partial / FILE, facts)
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)
