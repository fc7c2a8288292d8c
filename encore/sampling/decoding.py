"""Sampling of completions for small models: from the distribution of `generate`, in a third of its time.

With a small model most of a decoding step of `generate` is bookkeeping, and a batch runs as long as its
longest row. Here a step is a few matrix products, a prompt is read once for all its completions, and rows
that have ended leave the batch. The log-probabilities of the drawn tokens are returned too, which saves a
forward pass for the old ones. Knows the architectures of Llama, Qwen2 and Qwen3 (arXiv 2505.09388 §2), the
latter dense and sparse; a test compares them with transformers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from encore.errors import UserError
from encore.models.sharded import is_sharded

NEVER = -1e9  # added to an attention score; finite, so that a row of padding alone has no NaN
CROWDED = 0.8  # once a smaller share of the rows goes on, the others are dropped, which copies the cache

# of each layer: keys and values (rows, heads, time, head_dim)
Cache = list[tuple[torch.Tensor, torch.Tensor]]
Mlp = Callable[[torch.Tensor], torch.Tensor]  # (rows, width) -> the same
KNOWN = ("llama", "qwen2", "qwen3", "qwen3_moe")  # model_type of a configuration
BY_LENGTH = ("dynamic", "longrope")  # rotary positions whose angles depend on the length of the row


@dataclass(frozen=True)
class Layer:
    """The weights of a layer; matrices that read one input are joined."""

    norm: torch.Tensor  # (width,)
    qkv: torch.Tensor  # (heads * head_dim, width), of queries, keys and values in turn
    bias: torch.Tensor | None  # (heads * head_dim,); Qwen2's alone
    qk_norm: torch.Tensor | None  # (heads, head_dim), of queries and keys; Qwen3's alone
    out: torch.Tensor  # (width, heads * head_dim)
    mlp_norm: torch.Tensor  # (width,)
    mlp: Mlp


class Decoder:
    """Decoding steps of a policy of a known architecture, with its present weights.

    Raises UserError for another model, and for one whose weights are spread over processes.
    """

    def __init__(self, model: Any, time: int):
        """`time`: the most tokens of a row, prompt and completion."""
        if is_sharded(model):
            raise UserError("sampler: lean reads whole weights, and these are sharded; remove it")
        config = model.config
        _check(config)
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.eps = config.rms_norm_eps
        with torch.no_grad():
            self.embedding, self.head = model.model.embed_tokens.weight, model.lm_head.weight
            self.norm = model.model.norm.weight
            self.layers = [self.weights(layer) for layer in model.model.layers]
            places = torch.arange(time, device=self.embedding.device)[None]
            cos, sin = model.model.rotary_emb(self.embedding[:1, None], places)  # (1, time, head_dim)
        half = self.head_dim // 2
        # rotate_half(x) * sin is x rolled by a half, times sin with its first half negative
        self.cos, self.sin = cos[0], torch.cat([-sin[0, :, :half], sin[0, :, half:]], dim=-1)

    def weights(self, layer: Any) -> Layer:
        """Return the weights of a layer of transformers' model."""
        attention = layer.self_attn
        read = (attention.q_proj, attention.k_proj, attention.v_proj)
        norms = []
        if hasattr(attention, "q_norm"):
            norms = [attention.q_norm.weight] * self.heads + [attention.k_norm.weight] * self.kv_heads
        return Layer(
            norm=layer.input_layernorm.weight,
            qkv=torch.cat([linear.weight for linear in read]),
            bias=None if read[0].bias is None else torch.cat([linear.bias for linear in read]),
            qk_norm=torch.stack(norms) if norms else None,
            out=attention.o_proj.weight,
            mlp_norm=layer.post_attention_layernorm.weight,
            mlp=_dense(layer.mlp) if hasattr(layer.mlp, "gate_proj") else _sparse(layer.mlp),
        )

    def empty(self, rows: int, time: int) -> Cache:
        shape = (rows, self.kv_heads, time, self.head_dim)
        return [(self.embedding.new_empty(shape), self.embedding.new_empty(shape)) for _ in self.layers]

    def step(
        self, ids: torch.Tensor, places: torch.Tensor, slot: int, cache: Cache, bias: torch.Tensor
    ) -> torch.Tensor:
        """The last layer's output (rows, width) after `ids` (rows,), which take the cache's column `slot`.

        `places` (rows,): their positions; `bias` (rows, 1, 1, time): added to the scores of columns.
        """
        rows = len(ids)
        queries = self.heads + self.kv_heads
        cos, sin = self.cos[places, None], self.sin[places, None]  # (rows, 1, head_dim)
        hidden = self.embedding[ids]  # (rows, width)
        for layer, (keys, values) in zip(self.layers, cache, strict=True):
            joined = functional.linear(self.normed(hidden, layer.norm), layer.qkv, layer.bias)
            heads = joined.view(rows, -1, self.head_dim)
            turned = heads[:, :queries]
            if layer.qk_norm is not None:
                turned = functional.rms_norm(turned, (self.head_dim,), None, self.eps) * layer.qk_norm
            turned = turned * cos + turned.roll(self.head_dim // 2, dims=-1) * sin
            keys[:, :, slot], values[:, :, slot] = turned[:, self.heads :], heads[:, queries:]
            attended = functional.scaled_dot_product_attention(
                turned[:, : self.heads, None],
                keys[:, :, : slot + 1],
                values[:, :, : slot + 1],
                attn_mask=bias[..., : slot + 1],
                enable_gqa=self.heads != self.kv_heads,
            )
            hidden = hidden + functional.linear(attended.reshape(rows, -1), layer.out)
            hidden = hidden + layer.mlp(self.normed(hidden, layer.mlp_norm))
        return hidden

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits (rows, vocabulary) from the last layer's output."""
        return functional.linear(self.normed(hidden, self.norm), self.head)

    def normed(self, values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(values, weight.shape, weight, self.eps)


def _check(config: Any) -> None:
    """Raise UserError unless the decoder computes what a model of this configuration does."""
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
    if parts := [name for name, has in odd.items() if has]:
        raise UserError(f"sampler: lean knows no {kind} with {', '.join(parts)}; remove it")


def _dense(mlp: Any) -> Mlp:
    gate_up = torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight])
    down = mlp.down_proj.weight

    def forward(values: torch.Tensor) -> torch.Tensor:
        gate, up = functional.linear(values, gate_up).chunk(2, dim=-1)
        return functional.linear(functional.silu(gate) * up, down)

    return forward


def _sparse(mlp: Any) -> Mlp:
    """A mixture of experts. Small ones are all run, which takes less time than to sort rows by expert."""
    router, gate_up, down = mlp.gate.weight, mlp.experts.gate_up_proj, mlp.experts.down_proj
    visited, whole = mlp.gate.top_k, mlp.gate.norm_topk_prob

    def forward(values: torch.Tensor) -> torch.Tensor:
        shares, chosen = functional.linear(values, router).float().softmax(dim=-1).topk(visited, dim=-1)
        if whole:
            shares = shares / shares.sum(dim=-1, keepdim=True)
        gate, up = (values @ gate_up.mT).chunk(2, dim=-1)  # (experts, rows, expert_size)
        outputs = (functional.silu(gate) * up) @ down.mT  # (experts, rows, width)
        of_all = values.new_zeros(len(values), len(router)).scatter(1, chosen, shares.to(values.dtype))
        return torch.einsum("re,erw->rw", of_all, outputs)

    return forward


def of_rows(cache: Cache, rows: torch.Tensor, used: int) -> Cache:
    """The cache of some rows; of its columns the first `used` are copied, the others hold nothing yet."""

    def copied(part: torch.Tensor) -> torch.Tensor:
        new = part.new_empty((len(rows), *part.shape[1:]))
        torch.index_select(part[:, :, :used], 0, rows, out=new[:, :, :used])
        return new

    return [(copied(keys), copied(values)) for keys, values in cache]


@torch.inference_mode()
def sample(
    model: Any, prompts: Sequence[Sequence[int]], cap: int, temperature: float, ends: Sequence[int]
) -> tuple[list[list[int]], torch.Tensor]:
    """A completion of each prompt, and the log-probabilities of its tokens (rows, time), 0 after its end.

    It ends with a token of `ends`, or with its `cap`-th. Draws from softmax(logits / `temperature`); at
    temperature 0 takes the likeliest token.
    """
    distinct = list(dict.fromkeys(map(tuple, prompts)))
    width, rows = max(map(len, distinct)), len(prompts)
    decoder = Decoder(model, width + cap)
    device = decoder.embedding.device
    starts = torch.tensor([width - len(prompt) for prompt in distinct], device=device)
    ids = torch.tensor([[0] * (width - len(prompt)) + [*prompt] for prompt in distinct], device=device)
    padded = torch.arange(width + cap, device=device) < starts[:, None]  # (distinct, time)
    bias = torch.zeros_like(padded, dtype=decoder.embedding.dtype).masked_fill(padded, NEVER)[:, None, None]
    cache = decoder.empty(len(distinct), width + cap)
    for slot in range(width):
        hidden = decoder.step(ids[:, slot], (slot - starts).clamp(min=0), slot, cache, bias)

    # from here on a row is a completion; it starts with what its prompt has left
    number = {prompt: place for place, prompt in enumerate(distinct)}
    take = torch.tensor([number[tuple(prompt)] for prompt in prompts], device=device)
    logits, starts, bias = decoder.logits(hidden)[take], starts[take], bias[take]
    cache = of_rows(cache, take, width)
    going = torch.arange(rows, device=device)  # rows in the batch
    alive = torch.ones_like(going, dtype=torch.bool)  # those of them that have not ended
    drawn = torch.zeros((rows, cap), dtype=torch.long, device=device)
    logps = torch.zeros((rows, cap), dtype=logits.dtype, device=device)
    lengths = torch.zeros_like(going)
    stop = torch.tensor(list(ends), device=device)
    for length in range(cap):
        log_probs = (logits / (temperature or 1.0)).log_softmax(dim=-1)
        # the largest of p / Exponential(1) is a draw from p
        noise = torch.empty_like(log_probs).exponential_() if temperature else 1.0
        token = (log_probs.exp() / noise).argmax(dim=-1)
        drawn[going, length] = token
        logps[going, length] = log_probs.gather(1, token[:, None])[:, 0]
        lengths[going] += alive
        alive &= ~torch.isin(token, stop)
        left = int(alive.sum())
        if not left or length + 1 == cap:
            break
        if left < CROWDED * len(going):
            keep = alive.nonzero()[:, 0]
            going, alive, token, starts, bias = (x[keep] for x in (going, alive, token, starts, bias))
            cache = of_rows(cache, keep, width + length)
        slot = width + length
        logits = decoder.logits(decoder.step(token, slot - starts, slot, cache, bias))
    logps *= torch.arange(cap, device=device) < lengths[:, None]
    ids_of = [row[:end] for row, end in zip(drawn.tolist(), lengths.tolist(), strict=True)]
    return ids_of, logps[:, : int(lengths.max())]
