"""Log-probabilities of completions, with the prompt of a group read once for all of its completions.

A group has G completions of one prompt, and a forward pass over each completion would read the prompt G
times. Here a group is one row: the prompt without its last token, then each completion behind a copy of that
token. A mask hides the completions from one another, and the positions of each completion go on from the
prompt. The numbers are the same but for rounding, computed over P + G(T + 1) tokens instead of G(P + T).
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from encore.errors import UserError
from encore.learning.minibatch import Tokens
from encore.models.packing import IGNORED
from encore.recipe.portion import piece_rows

MASKS = ("sdpa", "eager")  # implementations of attention that take a mask for pairs of tokens
PROMPT, PADDING = 0, -1  # numbers of a row's other parts; completions are numbered from 1


@dataclass(frozen=True)
class Groups:
    """B completions in rows of width W; each distinct prompt has one row."""

    ids: Tensor  # (groups, W)
    places: Tensor  # (groups, W) the position of each token in its own text
    parts: Tensor  # (groups, W) PROMPT, the number of the completion from 1 on, or PADDING
    row: Tensor  # (B,) the row of each completion
    column: Tensor  # (B,) the column of the copy of the prompt's last token before each completion
    lengths: Tensor  # (B,) tokens of each completion

    @property
    def widths(self) -> Tensor:
        """The tokens of each row, (groups,)."""
        return (self.parts != PADDING).sum(dim=1)

    def mask(self, rows: Tensor, width: int, dtype: torch.dtype) -> Tensor:
        """Return the mask that is added to the attention scores of some rows, (rows, 1, width, width).

        A token sees the earlier tokens of the prompt and of its own completion.
        """
        parts = self.parts[rows, :width]
        same = parts[:, None, :] == parts[:, :, None]  # (rows, tokens that see, tokens that may be seen)
        causal = torch.ones(width, width, dtype=torch.bool, device=parts.device).tril()
        seen = causal & (same | (parts == PROMPT)[:, None, :])
        return torch.zeros(seen.shape, dtype=dtype, device=parts.device).masked_fill(
            ~seen, torch.finfo(dtype).min
        )[:, None]

    def labels(self, rows: Tensor, width: int) -> Tensor:
        """Return the tokens of the completions, (rows, width), with IGNORED at all other positions."""
        parts = self.parts[rows, :width]
        begins = torch.ones_like(parts, dtype=torch.bool)
        begins[:, 1:] = parts[:, 1:] != parts[:, :-1]  # marks the copy of the prompt's last token
        return self.ids[rows, :width].masked_fill((parts <= PROMPT) | begins, IGNORED)


def grouped(tokens: Tokens) -> Groups:
    """Return the completions of a batch with a row for each distinct prompt."""
    real = tokens.prompt_mask.bool()
    prompts = [tuple(ids[mask].tolist()) for ids, mask in zip(tokens.prompt_ids, real, strict=True)]
    lengths = tokens.completion_mask.sum(dim=1)
    number = {prompt: row for row, prompt in enumerate(dict.fromkeys(prompts))}
    ids = [[*prompt[:-1]] for prompt in number]
    places = [[*range(len(prompt) - 1)] for prompt in number]
    parts = [[PROMPT] * (len(prompt) - 1) for prompt in number]
    rows, columns = [], []
    for prompt, length, completion in zip(
        prompts, lengths.tolist(), tokens.completion_ids.tolist(), strict=True
    ):
        row, last = number[prompt], len(prompt) - 1
        rows.append(row)
        columns.append(len(ids[row]))
        ids[row] += [prompt[-1], *completion[:length]]
        places[row] += range(last, last + length + 1)
        parts[row] += [(parts[row] or [PROMPT])[-1] + 1] * (length + 1)
    width = max(2, *map(len, ids))  # a single token has no log-probability
    device = tokens.completion_ids.device

    def rectangle(values: list[list[int]], fill: int) -> Tensor:
        return torch.tensor([row + [fill] * (width - len(row)) for row in values], device=device)

    return Groups(
        rectangle(ids, 0),
        rectangle(places, 0),
        rectangle(parts, PADDING),
        torch.tensor(rows, device=device),
        torch.tensor(columns, device=device),
        lengths,
    )


def logps(
    model: Any, tokens: Tokens, rows: int | None, with_entropy: bool, accelerator: Any
) -> tuple[Tensor, Tensor | None]:
    """Return log-probabilities and entropies of completions, each (B, T) in nats, 0 at padding.

    At most `rows` completions run at a time, but all completions of a prompt run together. If `rows` is None,
    all run at once. Raises UserError if the model's attention takes no mask of pairs of tokens.
    """
    kind = model.config._attn_implementation
    if kind not in MASKS:
        raise UserError(f"share_prompts: expected attention by {' or '.join(MASKS)}, not {kind}")
    groups = grouped(tokens)
    count = len(groups.ids)
    most = count if rows is None else max(1, rows * count // len(tokens))
    order = torch.argsort(groups.widths, descending=True, stable=True)
    log_probs: list[Tensor] = []
    entropies: list[Tensor] = []
    members: list[Tensor] = []
    steps = torch.arange(tokens.time, device=order.device)
    for piece in order.split(min(most, piece_rows(count, smallest=1))):
        width = max(2, int(groups.widths[piece[0]]))
        with accelerator.autocast():
            outputs = model(
                input_ids=groups.ids[piece, :width],
                attention_mask=groups.mask(piece, width, model.dtype),
                position_ids=groups.places[piece, :width],
                labels=groups.labels(piece, width),
                fused_lm_head=True,
            )
        # outputs.log_probs: (rows, width - 1), of the tokens in columns 1…
        inside = torch.isin(groups.row, piece).nonzero()[:, 0]  # completions of the piece
        row = (groups.row[inside, None] == piece).long().argmax(dim=1)[:, None]
        column = (groups.column[inside, None] + steps).clamp(max=width - 2)
        real = steps < groups.lengths[inside, None]
        members.append(inside)
        log_probs.append(outputs.log_probs[row, column] * real)
        if with_entropy:
            entropies.append(outputs.entropy[row, column] * real)
    back = torch.argsort(torch.cat(members))
    return torch.cat(log_probs)[back], torch.cat(entropies)[back] if with_entropy else None
