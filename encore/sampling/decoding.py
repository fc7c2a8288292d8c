"""Sampling of completions for small models, with the distribution of `generate` in a third of its time.

With a small model most of a decoding step of `generate` is bookkeeping, and a batch runs as long as its
longest row. Here a step is a few matrix products, a prompt is read once for all its completions, and rows
that have ended leave the batch. The log-probabilities of the drawn tokens are returned too, which saves the
forward pass for the old log-probabilities. The module knows the architectures of Llama, Qwen2 and Qwen3
(arXiv 2505.09388 §2), the last one dense and sparse; a test compares them with transformers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from torch.nn import functional

from encore.errors import UserError
from encore.models.sharded import is_sharded
from encore.sampling.layers import weights

NEVER = -1e9  # added to an attention score; finite, so that a row of padding alone has no NaN
OF_HALF = -1e4  # the same in float16, whose largest number is 65504
FLOAT32 = 4  # bytes of a number
CROWDED = 0.8  # if a smaller share of a batch's rows is unfinished, the finished rows leave the batch
BLOCK = 4096  # largest number of prompt tokens in one forward pass

# for each layer: keys and values (rows, heads, time, head_dim)
Cache = list[tuple[torch.Tensor, torch.Tensor]]
KNOWN = ("llama", "qwen2", "qwen3", "qwen3_moe")  # model_type of the known configurations
BY_LENGTH = ("dynamic", "longrope")  # kinds of rotary positions whose angles depend on the length of the row


@dataclass(frozen=True)
class Prefilled:
    """The state after reading prompts: a row for each prompt, whose first `used` columns are filled."""

    logits: torch.Tensor  # (rows, vocabulary): logits of the token after the prompt
    cache: Cache
    bias: torch.Tensor  # (rows, 1, 1, time), NEVER or OF_HALF at columns without a token
    gaps: torch.Tensor  # (rows,): the number of filled columns without a token, which are padding
    used: int


class Decoder:
    """A decoder of a policy, with the weights and adapters that the policy has when the decoder is made.

    Raises UserError for an unknown architecture, and for weights that are spread over processes.
    """

    def __init__(self, model: Any, time: int):
        """Make a decoder of `model` for rows of at most `time` tokens, prompt and completion together."""
        if any(map(is_sharded, model.modules())):  # a model below adapters is sharded in its layers
            raise UserError("sampler: lean needs whole weights, but these are sharded; remove it")
        config = model.config
        _check_model(config)
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.eps = config.rms_norm_eps
        self.never = OF_HALF if model.lm_head.weight.dtype == torch.float16 else NEVER
        with torch.no_grad():
            self.embedding, self.head = model.model.embed_tokens.weight, model.lm_head.weight
            self.norm = model.model.norm.weight
            self.layers = [weights(layer, self.heads, self.kv_heads) for layer in model.model.layers]
            places = torch.arange(time, device=self.embedding.device)[None]
            cos, sin = model.model.rotary_emb(self.embedding[:1, None], places)  # (1, time, head_dim)
        half = self.head_dim // 2
        # rotate_half(x) * sin equals x rolled by a half, times sin with its first half negative
        self.cos, self.sin = cos[0], torch.cat([-sin[0, :, :half], sin[0, :, half:]], dim=-1)

    def empty(self, rows: int, time: int) -> Cache:
        shape = (rows, self.kv_heads, time, self.head_dim)
        return [(self.embedding.new_empty(shape), self.embedding.new_empty(shape)) for _ in self.layers]

    def step(
        self, ids: torch.Tensor, places: torch.Tensor, slot: int, cache: Cache, bias: torch.Tensor
    ) -> torch.Tensor:
        """Return the last layer's output (rows, n, width) for the tokens `ids` (rows, n).

        Their keys and values go into the columns of `cache` from `slot` on. `places` (rows, n): positions of
        the tokens. `bias` (rows, 1, 1 or n, time) is added to the attention scores.
        """
        rows, count = ids.shape
        end = slot + count
        queries = self.heads + self.kv_heads
        cos, sin = self.cos[places, None], self.sin[places, None]  # (rows, n, 1, head_dim)
        hidden = self.embedding[ids]  # (rows, n, width)
        for layer, (keys, values) in zip(self.layers, cache, strict=True):
            joined = functional.linear(self.normed(hidden, layer.norm), layer.qkv, layer.bias)
            heads = joined.view(rows, count, -1, self.head_dim)
            turned = heads[:, :, :queries]
            if layer.qk_norm is not None:
                turned = functional.rms_norm(turned, (self.head_dim,), None, self.eps) * layer.qk_norm
            turned = turned * cos + turned.roll(self.head_dim // 2, dims=-1) * sin
            keys[:, :, slot:end] = turned[:, :, self.heads :].transpose(1, 2)
            values[:, :, slot:end] = heads[:, :, queries:].transpose(1, 2)
            attended = functional.scaled_dot_product_attention(
                turned[:, :, : self.heads].transpose(1, 2),
                keys[:, :, :end],
                values[:, :, :end],
                attn_mask=bias[..., :end],
                enable_gqa=self.heads != self.kv_heads,
            )
            hidden = hidden + functional.linear(attended.transpose(1, 2).flatten(2), layer.out)
            hidden = hidden + layer.mlp(self.normed(hidden, layer.mlp_norm))
        return hidden

    def prefill(self, prompts: Sequence[Sequence[int]], time: int) -> Prefilled:
        """Return the state of the model after it has read distinct prompts, in a cache of `time` columns.

        The common beginning of all prompts, such as worked examples, is read once.
        """
        columns_of = zip(*(prompt[:-1] for prompt in prompts), strict=False)
        shared = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns_of))
        rests = [[*prompt[shared:]] for prompt in prompts]
        width = max(map(len, rests))
        device = self.embedding.device
        gaps = torch.tensor([width - len(rest) for rest in rests], device=device)
        columns = torch.arange(time, device=device)
        empty = (columns >= shared) & (columns < shared + gaps[:, None])  # (rows, time)
        bias = torch.zeros_like(empty, dtype=self.embedding.dtype).masked_fill(empty, self.never)
        bias = bias[:, None, None]
        cache = self.empty(1, time)
        if shared:
            start = torch.tensor([prompts[0][:shared]], device=device)
            self.blocks(start, columns[None, :shared], 0, cache, torch.zeros_like(bias[:1]))
        cache = of_rows(cache, torch.zeros_like(gaps), shared)
        ids = torch.tensor([[0] * (width - len(rest)) + rest for rest in rests], device=device)
        places = (columns[shared : shared + width] - gaps[:, None]).clamp(min=0)
        hidden = self.blocks(ids, places, shared, cache, bias)
        return Prefilled(self.logits(hidden), cache, bias, gaps, shared + width)

    def blocks(
        self, ids: torch.Tensor, places: torch.Tensor, slot: int, cache: Cache, bias: torch.Tensor
    ) -> torch.Tensor:
        """Return the last layer's output (rows, width) at the last of `ids` (rows, n), read in blocks."""
        size = max(1, BLOCK // len(ids))
        for ids_of, places_of in zip(ids.split(size, dim=1), places.split(size, dim=1), strict=True):
            count, end = ids_of.shape[1], slot + ids_of.shape[1]
            later = torch.ones(count, end, dtype=torch.bool, device=ids.device).triu(slot + 1)
            causal = bias[..., :end].masked_fill(later, self.never)  # (rows, 1, n, end)
            hidden = self.step(ids_of, places_of, slot, cache, causal)[:, -1]
            slot = end
        return hidden

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return logits (…, vocabulary), float32 at least, from the last layer's output (…, width)."""
        logits = functional.linear(self.normed(hidden, self.norm), self.head)
        return logits.float() if logits.dtype.itemsize < FLOAT32 else logits

    def normed(self, values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(values, weight.shape, weight, self.eps)


def _check_model(config: Any) -> None:
    """Raise UserError unless the decoder computes the same as a model of this configuration."""
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    odd = {
        "attention_bias": getattr(config, "attention_bias", False),
        "mlp_bias": getattr(config, "mlp_bias", False),
        "use_sliding_window": getattr(config, "use_sliding_window", False),
        f"rope_type {rope}": rope in BY_LENGTH,
    }
    kind = config.model_type
    if kind not in KNOWN:
        raise UserError(f"sampler: lean knows models of {', '.join(KNOWN)} alone, not {kind}; remove it")
    if parts := [name for name, is_present in odd.items() if is_present]:
        raise UserError(f"sampler: lean knows no {kind} with {', '.join(parts)}; remove it")


def of_rows(cache: Cache, rows: torch.Tensor, used: int) -> Cache:
    """Return a cache with the rows of `cache` whose indices are `rows`; only `used` columns are copied."""

    def copied(part: torch.Tensor) -> torch.Tensor:
        new = part.new_empty((len(rows), *part.shape[1:]))
        torch.index_select(part[:, :, :used], 0, rows, out=new[:, :, :used])
        return new

    return [(copied(keys), copied(values)) for keys, values in cache]


def drawn_of(logits: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a token for each row of `logits` (rows, vocabulary), and its log-probability, each (rows,).

    The token is drawn from softmax(logits / `temperature`), or is the likeliest at temperature 0. Looking up
    a uniform number in the running sum of the probabilities takes a tenth of the time of drawing a Gumbel
    number for each token.
    """
    scaled = logits / (temperature or 1.0)
    largest = scaled.amax(dim=-1, keepdim=True)
    # float64, because float32 would lose rare tokens
    sums = (scaled - largest).exp_().cumsum(dim=-1, dtype=torch.float64)
    if temperature:
        at = torch.rand_like(sums[:, :1]) * sums[:, -1:]
        token = torch.searchsorted(sums, at, right=True).clamp(max=logits.shape[-1] - 1)
    else:
        token = scaled.argmax(dim=-1, keepdim=True)
    logp = scaled.gather(1, token) - largest - sums[:, -1:].log().to(scaled.dtype)
    return token[:, 0], logp[:, 0]


@torch.inference_mode()
def sample(
    model: Any, prompts: Sequence[Sequence[int]], cap: int, temperature: float, ends: Sequence[int]
) -> tuple[list[list[int]], torch.Tensor]:
    """Return the token ids of a completion for each of `prompts`, and their log-probabilities.

    A completion ends with a token of `ends`, or after `cap` tokens. The log-probabilities (prompts, time) are
    of softmax(logits / `temperature`), and 0 after the end. At temperature 0 the likeliest tokens are taken.
    """
    distinct = list(dict.fromkeys(map(tuple, prompts)))
    rows, time = len(prompts), max(map(len, distinct)) + cap
    decoder = Decoder(model, time)
    prefilled = decoder.prefill(distinct, time)
    device = decoder.embedding.device

    # from here on a row is a completion, which starts with the state of its prompt
    number = {prompt: place for place, prompt in enumerate(distinct)}
    take = torch.tensor([number[tuple(prompt)] for prompt in prompts], device=device)
    logits, gaps, bias = prefilled.logits[take], prefilled.gaps[take], prefilled.bias[take]
    cache = of_rows(prefilled.cache, take, prefilled.used)
    going = torch.arange(rows, device=device)  # numbers of the rows in the batch
    alive = torch.ones_like(going, dtype=torch.bool)  # whether each row of the batch has not ended yet
    drawn = torch.zeros((rows, cap), dtype=torch.long, device=device)
    logps = torch.zeros((rows, cap), dtype=logits.dtype, device=device)
    lengths = torch.zeros_like(going)
    stop = torch.tensor(list(ends), device=device)
    for length in range(cap):
        token, logp = drawn_of(logits, temperature)
        drawn[going, length] = token
        logps[going, length] = logp
        lengths[going] += alive
        alive &= ~torch.isin(token, stop)
        left = int(alive.sum())
        if not left or length + 1 == cap:
            break
        if left < CROWDED * len(going):
            keep = alive.nonzero()[:, 0]
            going, alive, token, gaps, bias = (x[keep] for x in (going, alive, token, gaps, bias))
            cache = of_rows(cache, keep, prefilled.used + length)
        slot = prefilled.used + length
        hidden = decoder.step(token[:, None], (slot - gaps)[:, None], slot, cache, bias)
        logits = decoder.logits(hidden[:, 0])
    logps *= torch.arange(cap, device=device) < lengths[:, None]
    ids_of = [row[:end] for row, end in zip(drawn.tolist(), lengths.tolist(), strict=True)]
    return ids_of, logps[:, : int(lengths.max())]
