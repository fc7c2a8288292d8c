"""The size of a batch that the memory has room for, computed from the model's shape and the free memory."""

from typing import Any

import torch

MOST = 512  # largest batch of completions
# bytes of a CPU's memory for a batch of completions: a constant, because samples depend on the batch's size
DECODED = 2**33
SHARE = 0.8  # share of the free memory; the rest is for fragmentation and for the kernels' own buffers
# bytes for each logit: float32, a softmax and, for top-p, a sorted copy, its int64 order and its sum
BYTES_A_LOGIT = 4 + 4 + 4 + 8 + 4
SCORED = 2**30  # bytes of a CPU's memory for the logits of scored texts
BYTES_A_SCORED_LOGIT = 4 + 4  # the logit of each position, and its log-softmax


def row_bytes(config: Any, width: int, itemsize: int) -> int:
    """Return the bytes that a row of `width` tokens takes while it is decoded.

    `config`: the model's configuration. The bytes are for the keys and values of every layer and token, the
    activations of one layer as it reads the prompt, and the logits of one step.
    """
    text = config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    inner = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
    cached = 2 * text.num_hidden_layers * heads * head_dim
    layer = 4 * text.hidden_size + 3 * inner
    return width * (cached + layer) * itemsize + text.vocab_size * BYTES_A_LOGIT


def rows_at_once(config: Any, width: int, itemsize: int, free: int | None) -> int:
    """Return how many rows of `width` tokens fit into `free` bytes: a power of two, from 1 to `MOST`.

    It is a power of two, so that a little more or less free memory seldom changes what is sampled. `free`:
    free bytes of a GPU's memory; None on a CPU, where a batch may take DECODED.
    """
    room = int(SHARE * (DECODED if free is None else free))
    return _power_of_two(room // row_bytes(config, width, itemsize))


def scored_at_once(vocabulary: int, width: int, free: int | None) -> int:
    """Return how many texts of `width` tokens are scored at once: a power of two, from 1 to `MOST`.

    lm-eval keeps the logits of every position of a batch. `vocabulary`: number of tokens in the vocabulary.
    `free`: free bytes of a GPU's memory, None on a CPU.
    """
    room = SCORED if free is None else int(SHARE * free)
    return _power_of_two(room // (width * vocabulary * BYTES_A_SCORED_LOGIT))


def _power_of_two(fitting: int) -> int:
    """Return the largest power of two up to `fitting`, from 1 to `MOST`."""
    return min(MOST, 1 << max(fitting.bit_length() - 1, 0))


def free_bytes(device: torch.device) -> int | None:
    """Return the bytes of a GPU's memory that this process can still take; None for a CPU."""
    if device.type != "cuda":
        return None
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + kept
