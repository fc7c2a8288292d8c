"""The critic says what the reward model said, whatever the padding; the order of the documents of ptx."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen3Config, Qwen3ForCausalLM, Qwen3ForSequenceClassification

from encore import worlds
from encore.learning.ptx import indices
from encore.models import reward_model
from encore.models.critic import (
    from_nothing,
    from_policy,
    from_reward_model,
    learnt,
    set_learnt,
    token_values,
    with_adapters,
)
from encore.models.reward_model import RewardModel
from encore.recipe.kinds.stage import Lora

WORDS = worlds.tokenizer([worlds.make({"world": "chain"})])
SHAPE = Qwen3Config(
    vocab_size=len(WORDS),
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=8,
    max_position_embeddings=64,
    initializer_range=0.3,
    pad_token_id=WORDS.pad_token_id,
    attention_dropout=0.5,
    num_labels=1,
)
# prompts padded on the left, completions on the right: (batch, time)
IDS = torch.tensor([[0, 0, 7, 8, 9, 10, 11, 0], [7, 8, 9, 10, 11, 12, 0, 0], [0, 7, 8, 9, 10, 11, 12, 13]])
MASK = (IDS != 0).long()
KEEP = 4  # columns of completions
ROWS = [row[row != 0].tolist() for row in IDS]


@pytest.fixture(scope="module")
def policy():
    torch.manual_seed(0)
    return Qwen3ForCausalLM(SHAPE).eval()


@pytest.fixture(scope="module")
def scorer():
    torch.manual_seed(1)
    return RewardModel([Qwen3ForSequenceClassification(SHAPE)], WORDS, [0.3], [2.0], "here")


def test_from_a_reward_model_it_scores_every_prefix(scorer):
    """V before token t is the reward model's score of what comes before it."""
    critic = from_reward_model(scorer)
    values = token_values(critic, IDS, MASK, KEEP, rows=1)
    for row, ids in enumerate(ROWS):
        length = int(MASK[row, -KEEP:].sum())
        prefixes = [ids[: len(ids) - length + t] for t in range(length)]
        assert values[row, :length].tolist() == pytest.approx(
            scorer.score_ids(prefixes)[0].tolist(), abs=1e-5
        )
        assert not values[row, length:].any()
    assert torch.allclose(values, token_values(critic, IDS, MASK, KEEP, rows=3), atol=1e-6)


def test_it_is_a_copy_without_dropout_that_learns(scorer, policy):
    for critic in (from_reward_model(scorer), from_policy(policy, 0), from_nothing(policy, 0)):
        first, again = (token_values(critic, IDS, MASK, KEEP, rows=3) for _ in range(2))
        assert torch.equal(first, again)
        first.sum().backward()
        assert all(weight.grad is not None for weight in critic.parameters())
    for model in (scorer.members[0], policy):
        assert all(weight.grad is None for weight in model.parameters())


def test_values_are_whole_numbers_of_float32_under_autocast(scorer):
    """The head's sum is not rounded to bfloat16, in which rewards near 8 are 1/16 apart."""
    critic = from_reward_model(scorer)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        values = token_values(critic, IDS, MASK, KEEP, rows=3)
        scores = reward_model.raw_scores(scorer.members[0], ROWS)
    for found in (values * critic.scale + critic.bias, scores):
        assert found.dtype == torch.float32
        assert not torch.equal(found, found.bfloat16().float())


def test_where_it_starts_from(policy):
    """The policy's backbone or another one; the same head, which the seed decides."""
    same, random, other = from_policy(policy, 0), from_nothing(policy, 0), from_policy(policy, 1)
    for name, weight in policy.model.named_parameters():
        assert torch.equal(same.backbone.get_parameter(name), weight)
    assert torch.equal(same.head.weight, random.head.weight)
    assert not torch.equal(same.head.weight, other.head.weight)
    embedding = "embed_tokens.weight"
    assert not torch.equal(random.backbone.get_parameter(embedding), policy.model.get_parameter(embedding))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 9), st.integers(1, 7), st.integers(0, 3))
def test_documents_come_each_once_an_epoch_whatever_the_batch(count: int, size: int, seed: int):
    batches = [indices(number, size, count, seed) for number in range(3 * count)]
    stream = [index for batch in batches for index in batch]
    for epoch in range(len(stream) // count):
        assert sorted(stream[epoch * count : (epoch + 1) * count]) == list(range(count))
    assert stream[: 2 * count] == [indices(number, 1, count, seed)[0] for number in range(2 * count)]


def test_with_adapters_it_says_the_same_and_trains_little(scorer):
    """Of its backbone a checkpoint needs the adapters alone: the rest is as it was loaded."""
    plain = from_reward_model(scorer)
    critics = [with_adapters(from_reward_model(scorer), Lora(rank=2, alpha=4), 0) for _ in range(2)]
    values = [token_values(critic, IDS, MASK, KEEP, rows=3) for critic in (plain, *critics)]
    assert torch.equal(values[0], values[1])
    trained = learnt(critics[0])
    assert {name for name in trained if "lora_" not in name} == {"head.weight"}
    assert len(trained) == 1 + 2 * 7 * SHAPE.num_hidden_layers  # A and B of each linear layer
    values[1].sum().backward()
    optimizer = torch.optim.SGD([w for w in critics[0].parameters() if w.requires_grad], lr=0.1)
    optimizer.step()
    set_learnt(critics[1], learnt(critics[0]))
    after = [token_values(critic, IDS, MASK, KEEP, rows=3) for critic in critics]
    assert torch.equal(after[0], after[1])
    assert not torch.allclose(after[0], values[0])
    assert torch.equal(token_values(plain, IDS, MASK, KEEP, rows=3), values[0])
