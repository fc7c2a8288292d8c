"""Reward models score at the last real token, whatever the padding and the company; ensembles; bad input."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from saved_models import save_reward_model
from stage_runs import finished
from transformers import (
    AutoModelForSequenceClassification,
    GPTNeoXConfig,
    LlamaConfig,
    Qwen3Config,
    Qwen3ForSequenceClassification,
)

from encore import worlds
from encore.errors import UserError
from encore.models import language_model, reward_model
from encore.models.packing import within_positions
from encore.models.reward_model import RewardModel, aggregated
from encore.rewards.learned import as_reward

TOKENIZER = worlds.tokenizer([worlds.make({"world": "sort"})])
POSITIONS = 24


def member(seed: int) -> Any:
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(TOKENIZER),
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        num_labels=1,
        max_position_embeddings=POSITIONS,
        pad_token_id=TOKENIZER.pad_token_id,
    )
    model = Qwen3ForSequenceClassification(config)
    with torch.no_grad():
        model.score.weight.normal_(std=0.1)  # rewards of about 1
    return model


BIAS, SCALE = [0.5, -0.25, 0.0], [1.0, 2.0, 0.5]
MODEL = RewardModel([member(i) for i in range(3)], TOKENIZER, BIAS, SCALE, "here")
PROMPTS = ["<user>3 1 2<assistant>", "<user>9<assistant>", "<user>7 7<assistant>"]
prompted = st.tuples(
    st.sampled_from(PROMPTS), st.lists(st.integers(0, len(TOKENIZER) - 1), min_size=0, max_size=12)
)


def alone(prompt: str, completion: list[int]) -> torch.Tensor:
    """(members,), by transformers' parts, of one row without padding."""
    ids = torch.tensor([TOKENIZER(prompt)["input_ids"] + completion])
    with torch.no_grad():
        raw = [m.score(m.model(ids).last_hidden_state[0, -1]) for m in MODEL.members]
    return torch.stack([(r[0] - b) / s for r, b, s in zip(raw, BIAS, SCALE, strict=True)])


@settings(max_examples=15)
@given(st.lists(prompted, min_size=1, max_size=12), st.integers(1, 60))
def test_scores_do_not_depend_on_what_else_is_in_the_batch(rows, positions):
    with pytest.MonkeyPatch.context() as patch:  # pieces of one row up to the whole batch
        patch.setattr(reward_model, "POSITIONS", positions)
        found = MODEL.score(*map(list, zip(*rows, strict=True)))
    assert found.shape == (3, len(rows))
    for column, row in enumerate(rows):
        torch.testing.assert_close(found[:, column], alone(*row), rtol=0, atol=1e-6)


@given(st.lists(st.integers(1, 50), max_size=100), st.integers(1, 200))
def test_pieces_hold_each_row_once(lengths, positions):
    found = within_positions(lengths, positions)
    assert sorted(i for piece in found for i in piece) == [*range(len(lengths))]
    for piece in found:
        assert len(piece) == 1 or len(piece) * max(lengths[i] for i in piece) <= positions


@pytest.mark.parametrize("kind", [GPTNeoXConfig, LlamaConfig])
def test_other_architectures(kind):
    """Pythia's and Llama's: padding on the right, and a last token that is their padding token."""
    size = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    built = AutoModelForSequenceClassification.from_config(
        kind(vocab_size=9, num_labels=1, pad_token_id=0, **size)
    ).eval()
    rows = [[3, 4, 0], [5], [6, 7, 8, 2, 1, 0, 0]]
    together = reward_model.raw_scores(built, rows)
    apart = torch.cat([reward_model.raw_scores(built, [row]) for row in rows])
    torch.testing.assert_close(together, apart, rtol=0, atol=1e-6)
    with torch.no_grad():
        last = built(torch.tensor([[5]])).logits[0, 0]
    torch.testing.assert_close(together[1], last, rtol=0, atol=1e-6)


def test_text_and_ids_are_the_same_reward():
    end = TOKENIZER.eos_token_id
    texts = ["1 2 3", "9", "1 2 3"]
    ids = TOKENIZER(texts)["input_ids"]
    by_ids = MODEL.score(PROMPTS, [[*ids[0], end], [*ids[1], end], ids[2]])
    by_text = MODEL.score_text(PROMPTS, texts, [False, False, True])
    assert torch.equal(by_ids, by_text)
    assert not torch.equal(by_text, MODEL.score_text(PROMPTS, texts))
    assert MODEL.score([], []).shape == (3, 0)


def test_aggregates():
    rewards = torch.tensor([[1.0, 2.0], [3.0, -2.0], [2.0, 0.0]])
    assert aggregated(rewards, "mean").tolist() == [2.0, 0.0]
    assert aggregated(rewards, "worst").tolist() == [1.0, -2.0]


def test_trls_reward_function():
    logged = {}
    ids = [[5, 6, TOKENIZER.eos_token_id], [7], []]
    arguments = {"prompts": PROMPTS, "completions": ["?"] * 3, "completion_ids": ids, "answer": ["1"] * 3}
    for aggregate in ("mean", "worst"):
        reward = as_reward(MODEL, TOKENIZER, aggregate)
        assert reward.__name__ == "reward_model"
        found = reward(**arguments, log_metric=lambda name, value: logged.update({name: value}))
        assert found == aggregated(MODEL.score(PROMPTS, ids), aggregate).tolist()
    spread = MODEL.score(PROMPTS, ids).std(dim=0).mean()
    assert logged == {"rewards/reward_model/members_std": pytest.approx(float(spread))}


def test_scores_after_training_are_without_its_dropout():
    model = member(0)
    model.config.attention_dropout = 0.9
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.9
    model.train()
    first, again = (reward_model.raw_scores(model, [[5, 6, 7, 8, 9]]) for _ in range(2))
    assert torch.equal(first, again)
    assert model.training


def test_bad_input_is_told():
    other = worlds.tokenizer([worlds.make({"world": "countdown"})])
    with pytest.raises(UserError, match="the reward model here and the policy have different tokenizers"):
        as_reward(MODEL, other)
    with pytest.raises(UserError, match="without any token"):
        MODEL.score([""], [[]])
    with pytest.raises(UserError, match=f"have 41 tokens, but it has {POSITIONS} positions"):
        MODEL.score(["1"], [[5] * 40])
    bert = type("Bert", (), {"base_model_prefix": "bert", "config": Qwen3Config(), "bert": None})()
    with pytest.raises(UserError, match="has no score head"):
        reward_model.parts(bert)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_reward_model(MODEL.members, TOKENIZER, BIAS, SCALE, tmp_path / "final")
    return finished(tmp_path)


def test_saved_and_loaded(saved: Path):
    again = reward_model.load(saved)
    rows = (PROMPTS, [[5, 6], [7, 1], [8]])
    # on some processors the last bit depends on where in memory the weights lie
    torch.testing.assert_close(again.score(*rows), MODEL.score(*rows), rtol=0, atol=1e-6)
    again.same_tokenizer(TOKENIZER)
    assert not any(m.training for m in again.members)
    assert [path.name for path in saved.parent.iterdir() if "partial" in path.name] == []
    critic = reward_model.load_member(saved.parent / "final", 1)
    assert torch.equal(critic.score.weight, MODEL.members[1].score.weight)
    assert critic.config.pad_token_id == TOKENIZER.pad_token_id


def test_what_is_no_reward_model_is_told(saved: Path):
    final = saved.parent / "final"
    with pytest.raises(UserError, match="no member 3"):
        reward_model.load_member(final, 3)
    facts = json.loads((final / "reward.json").read_text())
    assert facts == {"members": 3, "bias": BIAS, "scale": SCALE}
    (final / "reward.json").write_text("{}")
    with pytest.raises(UserError, match="have changed since it was written"):
        reward_model.load(saved)
    (final / "reward.json").unlink()
    with pytest.raises(UserError, match="its stage has made no reward model"):
        reward_model.load(finished(saved.parent))


def test_a_policy_with_other_ends_is_told():
    like = worlds.tokenizer([worlds.make({"world": "sort"})])
    language_model.same_tokenizer(TOKENIZER, like, ("a", "b"))
    like.eos_token = like.pad_token
    with pytest.raises(UserError, match="their ends differ"):
        MODEL.same_tokenizer(like)
