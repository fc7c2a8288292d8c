"""Log-probabilities in pieces are TRL's."""

import contextlib
from types import SimpleNamespace

import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers import Qwen3Config, Qwen3ForCausalLM
from trl import GRPOTrainer
from trl.trainer.utils import add_fused_lm_head

from encore.learning.minibatch import Tokens
from encore.learning.policy import without_padding
from encore.models.packing import to_the_left

ACCELERATOR = SimpleNamespace(num_processes=1, autocast=contextlib.nullcontext)


def model() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 16}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    built = Qwen3ForCausalLM(Qwen3Config(vocab_size=13, max_position_embeddings=64, **size, **heads)).double()
    add_fused_lm_head(built, temperature=0.7, outputs=("log_probs", "entropy"))
    return built


MODEL = model()
PADDING = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 9)), min_size=1, max_size=20)


@settings(max_examples=25)
@example([(1, 1)] + [(1, 0)] * 9, 0)  # a piece without any completion, its prompts of one token
@given(PADDING, st.integers(0, 2**31))
def test_values_and_gradients(shape: list[tuple[int, int]], seed: int):
    """`shape`: prompt and completion length of each row; a completion of 0 is one masked out as truncated."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, 13, (len(shape), 6 + 9), generator=generator)
    place = torch.arange(15)
    mask = torch.stack([(place >= 6 - p) & (place < 6 + c) for p, c in shape]).long()
    mask[0, 6] = 1  # a rollout has at least one completion token
    trl = GRPOTrainer._get_per_token_logps_and_entropies.__wrapped__
    weight = torch.rand(len(shape), 9, generator=generator, dtype=torch.float64) * mask[:, 6:]
    found = []
    tokens = Tokens(ids[:, :6], mask[:, :6], ids[:, 6:], mask[:, 6:])
    passes = (
        lambda: trl(SimpleNamespace(accelerator=ACCELERATOR), MODEL, ids, mask, 9, len(shape), True),
        lambda: without_padding(MODEL, tokens, len(shape), True, ACCELERATOR),
    )
    for run in passes:
        MODEL.zero_grad()
        logps, entropies, _ = run()
        ((logps + 0.1 * entropies) * weight).sum().backward()  # an entropy bonus learns too
        gradient = torch.cat([p.grad.flatten() for p in MODEL.parameters()])
        found.append((logps * mask[:, 6:], entropies * mask[:, 6:], gradient))
    for plain, lean in zip(*found, strict=True):
        # TRL's kernel computes in float32: errors of up to 6e-7 of the largest number, in 1000 examples
        close = 5e-6 * max(1.0, plain.abs().max().item())
        torch.testing.assert_close(lean, plain, rtol=0, atol=close)


def test_to_the_left():
    ids = torch.tensor([[0, 5, 6, 7, 0], [8, 9, 1, 2, 3]])
    moved, lengths = to_the_left(ids, torch.tensor([[0, 1, 1, 1, 0], [1, 1, 1, 1, 1]]))
    assert moved[0, :3].tolist() == [5, 6, 7]
    assert moved[1].tolist() == [8, 9, 1, 2, 3]
    assert lengths.tolist() == [3, 5]
