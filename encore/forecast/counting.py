"""The shape of a model, counted on torch's `meta` device, where tensors have no data."""

import copy
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3MoeConfig

from encore.forecast.architecture import Architecture, Model
from encore.models import pretrained
from encore.models.experts import idle, routed
from encore.recipe.base import present
from encore.recipe.shape import Shape

VOCABULARY = 64  # approximate number of tokens of a world's alphabet


def architecture(model: Model, place: Path | None) -> Architecture:
    """Return the architecture of a model.

    `place` is the path of its config.json, or None if the recipe gives the model's shape.
    """
    return _count(_configuration(model, place), _named(model)[1] or "from nothing")


def saved_a_token(model: Model, place: Path | None, half: bool) -> float:
    """Return the bytes that one layer keeps of one token for its backward pass, without checkpointing.

    They are measured by running one layer and two layers on tensors without data. If a token visits only some
    of the experts, the number of tokens for each expert depends on data; then the bytes are computed from the
    layer's sizes.
    """
    config = copy.deepcopy(_configuration(model, place).get_text_config())
    if routed(config)[0] > 1:
        sizes = _count(config, "")
        copies = 2 * sizes.hidden * sizes.visited  # copies of a token that go to its experts and come back
        numbers = 10 * sizes.hidden + 4 * sizes.attention + 4 * sizes.inner + copies
        return numbers * (2 if half else 4)
    short, long = 128, 256

    def kept(layers: int, tokens: int) -> int:
        config.num_hidden_layers = layers
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[:1] * layers
        return _kept_for_backward(config, tokens, half)

    first, second_layer = (kept(layers, long) - kept(layers, short) for layers in (1, 2))
    return (second_layer - first) / (long - short)


def _kept_for_backward(config: Any, tokens: int, half: bool) -> int:
    """Return the bytes that the backbone saves for its backward pass over one row of `tokens` tokens.

    Weights are counted, and attention masks are not.
    """
    saved: dict[int, Any] = {}  # keeps the storages, so that no address is given twice
    with FakeTensorMode():
        config._attn_implementation = "sdpa"
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).train().base_model

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if tensor.shape[-2:] != (tokens, tokens):
                saved.setdefault(storage._cdata, storage)
            return tensor

        with (
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
            torch.autocast("cpu", torch.bfloat16, enabled=half),
        ):
            model(input_ids=torch.zeros(1, tokens, dtype=torch.long), use_cache=False)
    return sum(storage.nbytes() for storage in saved.values())


def _named(model: Model) -> tuple[str, str]:
    """Return the key by which a recipe names a model, and the model's name.

    Both are empty if the recipe gives the model's shape.
    """
    if isinstance(model, Shape):
        return "", ""
    return model.key, model.name


def _configuration(model: Model, place: Path | None) -> Any:
    if not isinstance(model, Shape):
        key, name = _named(model)
        return pretrained.configuration(present(place), f"model.{key}: {name}: cannot read its config.json")
    config = Qwen3MoeConfig if model.is_sparse else Qwen3Config
    return config(vocab_size=VOCABULARY, **model.options())


def _count(config: Any, name: str) -> Architecture:
    text = config.get_text_config()
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(text)
    parameters = sum(weight.numel() for weight in model.parameters())
    embedding = model.get_input_embeddings().weight
    head = model.get_output_embeddings().weight
    experts, visited = routed(text)
    tied = head is embedding
    linear = [m for n, m in model.named_modules() if isinstance(m, nn.Linear) and m.weight is not head]
    hidden, heads = text.hidden_size, text.num_attention_heads
    return Architecture(
        name=name,
        parameters=parameters,
        active=round(parameters - idle(model) - (0 if tied else embedding.numel())),
        embedding=embedding.numel(),
        head=head.numel(),
        tied=tied,
        largest_layer=max(sum(w.numel() for w in layer.parameters()) for layer in _layers(model)),
        linear=sum(m.in_features + m.out_features for m in linear),
        layers=text.num_hidden_layers,
        hidden=hidden,
        attention=heads * _head_size(text),
        cached=_cached(text),
        inner=_inner(text, visited),
        vocabulary=text.vocab_size,
        positions=getattr(text, "max_position_embeddings", None),
        experts=experts,
        visited=visited,
    )


def _layers(model: Any) -> Any:
    """Return the blocks of a model: the longest list of modules in it."""
    return max((m for m in model.modules() if isinstance(m, nn.ModuleList)), key=len)


def _head_size(text: Any) -> int:
    latent = getattr(text, "qk_nope_head_dim", None)
    if latent:
        return latent + text.qk_rope_head_dim
    return getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads


def _cached(text: Any) -> int:
    """Return how many numbers a server caches for a token in each layer.

    They are its keys and values, or the latent vector alone if the model has latent attention.
    """
    if getattr(text, "kv_lora_rank", None):
        return text.kv_lora_rank + text.qk_rope_head_dim
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    return 2 * heads * _head_size(text)


def _inner(text: Any, visited: int) -> int:
    size = getattr(text, "moe_intermediate_size", None)
    if size:
        return size * (visited + (getattr(text, "n_shared_experts", None) or 0))
    return getattr(text, "intermediate_size", None) or getattr(text, "n_inner", None) or 4 * text.hidden_size
