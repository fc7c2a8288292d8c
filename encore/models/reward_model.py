"""Reward models: a language model's backbone with a linear head, read at the last real token.

r(x, y) = (w·h(x, y) - bias) / scale, where h is the hidden state at the last token of prompt and completion.
This token is the end of sequence if the completion came to its end. The product of stage `reward_model` is a
folder

    reward.json {"members", "bias": [...], "scale": [...]} · the tokenizer's files · member0/ member1/ …

in which `save_pretrained` of a sequence classification model with one label has written each member. The
score never depends on padding: rows are padded on the right, where a causal model's tokens do not see it, and
the position of the last token is passed along. transformers would guess the position from padding tokens,
which fails if the tokenizer pads with its end of sequence.
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
POSITIONS = 8192  # most positions of a forward pass, padding included


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
        """Spread the weights of all members over the processes, which must then score together."""
        for member in self.members:
            member.forward = MethodType(at_last_token, member)
            spread(member.requires_grad_(False))

    def score(self, prompts: Sequence[str], completions: Sequence[Sequence[int]]) -> torch.Tensor:
        """Return rewards (members, batch), float32 on the CPU, of completions given as token ids.

        A completion that came to its end has the end-of-sequence token as its last token. Raises UserError if
        prompt and completion together have no token, or more tokens than the model has positions.
        """
        distinct = list(dict.fromkeys(prompts))
        ids = dict(zip(distinct, prompt_ids(distinct, self.tokenizer), strict=True))
        return self.score_ids([[*ids[p], *c] for p, c in zip(prompts, completions, strict=True)])

    def score_text(
        self, prompts: Sequence[str], completions: Sequence[str], truncated: bool | Sequence[bool] = False
    ) -> torch.Tensor:
        """Return the `score` of texts; `truncated` says which texts were cut before their end of sequence."""
        cuts = [truncated] * len(completions) if isinstance(truncated, bool) else truncated
        return self.score(prompts, reply_ids(completions, cuts, self.tokenizer))

    def score_ids(self, sequences: Sequence[Sequence[int]]) -> torch.Tensor:
        """Return rewards (members, batch) of sequences of token ids; equal sequences are computed once."""
        if not sequences:
            return torch.zeros(len(self.members), 0)
        rows, alone = distinct(map(tuple, sequences))
        self._check_not_empty(alone)
        raw = [raw_scores(member, alone) for member in self.members]
        rewards = [(r - b) / s for r, b, s in zip(raw, self.bias, self.scale, strict=True)]
        return torch.stack(rewards)[:, rows]

    def score_places(
        self, sequences: Sequence[Sequence[int]], places: Sequence[Sequence[int]]
    ) -> list[torch.Tensor]:
        """Return the mean over members of the rewards (places,) at the positions `places` of each sequence.

        Equal sequences with equal places are computed once.
        """
        if not sequences:
            return []
        rows, alone = distinct((tuple(ids), tuple(at)) for ids, at in zip(sequences, places, strict=True))
        ids, at = zip(*alone, strict=True)
        self._check_not_empty(ids)
        member_rewards = [
            [(r - b) / s for r in _raw_scores_at(member, ids, at)]
            for member, b, s in zip(self.members, self.bias, self.scale, strict=True)
        ]
        means = [torch.stack(rewards).mean(dim=0) for rewards in zip(*member_rewards, strict=True)]
        return [means[row] for row in rows]

    def same_tokenizer(self, tokenizer: Any) -> None:
        """Raise UserError unless the policy's `tokenizer` numbers all tokens as the reward model's does."""
        same_tokenizer(self.tokenizer, tokenizer, (f"the reward model {self.place}", "the policy"))

    def _check_not_empty(self, sequences: Any) -> None:
        if not min(map(len, sequences)):
            raise UserError(f"reward model {self.place}: a prompt and completion without any token")
        limit = getattr(self.members[0].config, "max_position_embeddings", None)
        longest = max(map(len, sequences))
        if limit is not None and longest > limit:
            raise UserError(
                f"reward model {self.place}: a prompt and completion have {longest} tokens, but it has "
                f"{limit} positions"
            )


def aggregated(rewards: torch.Tensor, aggregate: str) -> torch.Tensor:
    """Return the members' mean, or minimum for `worst` (Coste et al. 2023): (members, batch) -> (batch,)."""
    return rewards.mean(dim=0) if aggregate == "mean" else rewards.min(dim=0).values


# -- the model -----------------------------------------------------------------------------------------------


def parts(model: Any) -> tuple[Any, Any]:
    """Return backbone and linear head of a sequence classification model. Raises UserError if it has none."""
    backbone, head = getattr(model, model.base_model_prefix, None), getattr(model, HEAD, None)
    if backbone is None or head is None:
        raise UserError(f"a {model.config.model_type} model has no score head; use a causal language model")
    return backbone, head


def at_last_token(model: Any, input_ids: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """Return scores (rows,) of `input_ids` (rows, time), right-padded, at the positions `last` (rows,).

    There is no attention mask: a causal model's real tokens never see the padding after them.
    """
    backbone, head = parts(model)
    hidden = backbone(input_ids=input_ids, use_cache=False).last_hidden_state  # (rows, time, width)
    return read_out(head, hidden[torch.arange(len(last), device=last.device), last])


def at_every_token(model: Any, input_ids: torch.Tensor) -> torch.Tensor:
    """Return scores (rows, time) of `input_ids` (rows, time), right-padded; ignore scores at padding."""
    backbone, head = parts(model)
    return read_out(head, backbone(input_ids=input_ids, use_cache=False).last_hidden_state)


def read_out(head: Any, hidden: torch.Tensor) -> torch.Tensor:
    """Return the head's single output at `hidden` (..., width): (...), at least float32 even under autocast.

    With the 8 bits of bfloat16, scores near 8 would be 1/16 apart.
    """
    at_least = torch.promote_types(hidden.dtype, torch.float32)
    with torch.autocast(hidden.device.type, enabled=False):
        return linear(hidden.to(at_least), head.weight.to(at_least))[..., 0]


def raw_scores(model: Any, sequences: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return the scores (rows,) before bias and scale, float32 on the CPU, without gradients or dropout.

    If the model is sharded, its forward pass must be `at_last_token`, and all processes must call this
    function, with any number of sequences each.
    """
    scores = torch.empty(len(sequences))
    # only the sharded model's own call gathers all its weights
    score = model if is_sharded(model) else MethodType(at_last_token, model)
    for piece, piece_scores in _in_pieces(model, score, sequences):
        scores[piece] = piece_scores
    return scores


def _raw_scores_at(
    model: Any, sequences: Sequence[Sequence[int]], places: Sequence[Sequence[int]]
) -> list[torch.Tensor]:
    """Return the raw scores (places,) at the `places` of each sequence; the model is not sharded."""
    scores: dict[int, torch.Tensor] = {}
    for piece, piece_scores in _in_pieces(model, lambda ids, last: at_every_token(model, ids), sequences):
        scores |= {i: row[[*places[i]]] for i, row in zip(piece, piece_scores, strict=True)}
    return [scores[i] for i in range(len(sequences))]


def _in_pieces(
    model: Any, score: Callable[..., torch.Tensor], sequences: Sequence[Sequence[int]]
) -> list[tuple[list[int], torch.Tensor]]:
    """Return pieces of sequences of similar length: their indices, and their `score(input_ids, last)`."""
    device, was_training = next(model.parameters()).device, model.training
    sharded = is_sharded(model)
    quiet: Any = torch.no_grad() if sharded else torch.inference_mode()
    model.eval()
    pieces = within_positions([len(sequence) for sequence in sequences], POSITIONS)
    if sharded:
        pieces += pieces[-1:] * (max(gather_object([len(pieces)])) - len(pieces))
    scored = []
    with quiet:
        for piece in pieces:
            ids, last = padded([sequences[i] for i in piece])
            scored.append((piece, score(ids.to(device), last.to(device)).float().cpu()))
    model.train(was_training)
    return scored


# -- files ---------------------------------------------------------------------------------------------------


def load(metrics_json: Path) -> RewardModel:
    """Return the reward model that an upstream stage has saved.

    Raises UserError if it is missing or changed, or if the stage has made something else.
    """
    folder, _ = sentinel.product(metrics_json)
    return _open_folder(folder, f"{metrics_json}: its stage has made no reward model")


def _open_folder(folder: Path, otherwise: str = "not a reward model") -> RewardModel:
    """Return the reward model in `folder`.

    Raises UserError, with a message that starts with `otherwise`, if the folder has no reward model.
    """
    try:
        facts = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{otherwise}: there is no {folder / FILE}") from None
    members = [load_member(folder, i) for i in range(facts["members"])]
    tokenizer = load_tokenizer(Source(str(folder), None, ""))
    return RewardModel(members, tokenizer, facts["bias"], facts["scale"], str(folder))


def from_policy(source: Source, tokenizer: Any, seed: int, **options: Any) -> Any:
    """Return a sequence classification model with the backbone of a policy and a new head N(0, 1/(d+1)).

    `source` is a causal language model of width d, and `options` are options of from_pretrained. The head is
    drawn with `seed`, as in Stiennon et al. (2020, App. B.1).
    """
    options = {"dtype": torch.float32, **options, "num_labels": 1}
    failing = f"model {source.place}: cannot load it"
    model = pretrained.model(AutoModelForSequenceClassification, folder_of(source), failing, **options)
    _, head = parts(model)
    drawn = torch.randn(head.weight.shape, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        head.weight.copy_(drawn / (head.in_features + 1) ** 0.5)
    # written for users who score with transformers' own class
    model.config.pad_token_id = tokenizer.pad_token_id
    return as_stored(model)


def load_member(folder: Path, number: int) -> Any:
    """Return a member's sequence classification model, in float32."""
    place = folder / f"member{number}"
    if not place.is_dir():
        raise UserError(f"reward model {folder}: no member {number}")
    failing = f"reward model {place}: cannot load it"
    return pretrained.model(AutoModelForSequenceClassification, place, failing, dtype=torch.float32)


def begin(folder: Path) -> Path:
    """Create an empty folder beside `folder`, in which `add` and `finish` write the reward model."""
    partial = folder.with_name(f".{folder.name}.partial")
    if gpus.first():
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    return partial


def add(partial: Path, number: int, member: Any) -> None:
    """Write a member to `partial`. All processes must call `add`: together they gather sharded weights."""
    member, weights = lora.product(member)
    if not gpus.first():
        return
    with saving("the reward model", partial.parent):
        member.save_pretrained(partial / f"member{number}", state_dict=weights)


def finish(
    partial: Path, tokenizer: Any, bias: Sequence[float], scale: Sequence[float], folder: Path
) -> None:
    """Write the tokenizer and each member's bias and scale, and move everything to `folder`."""
    if not gpus.first():
        return
    with saving("the reward model", folder.parent):
        tokenizer.save_pretrained(partial)
        facts = {"members": len(bias), "bias": list(bias), "scale": list(scale)}
        files.write_json(partial / FILE, facts)
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)
