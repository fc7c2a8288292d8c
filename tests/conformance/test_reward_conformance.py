"""Reward models minimise InstructGPT's Eq. 1, in value and gradient of every optimizer step.

Wrong trainers show that the comparison would tell.
"""

from collections.abc import Callable
from types import MethodType
from typing import Any

import pytest
import torch
from compare import TOLERANCE
from reward_cases import LAYOUTS, SIZES, TOKENIZER, Seen, elements_of, model_of, sequences_of
from transformers import Qwen3ForSequenceClassification
from trl import RewardConfig, RewardTrainer

from encore.learning import reward_model
from encore.learning.reward_model import grouped, shuffled
from encore.models.reward_model import at_last_token
from encore.objectives.losses import k_wise


@pytest.mark.parametrize(
    "layout",
    [pytest.param(name, marks=() if name == "accumulated" else pytest.mark.slow) for name in LAYOUTS],
)
def test_grouped_comparisons(layout, tmp_path):
    seen = Seen(tmp_path, elements_of(), LAYOUTS[layout])
    assert len(seen.losses) == 3
    assert seen.deviation() < TOLERANCE


@pytest.mark.slow
def test_shuffled_comparisons(tmp_path):
    elements = elements_of(shuffled)
    assert len(elements) == sum(size * (size - 1) // 2 for size in SIZES)
    seen = Seen(tmp_path, elements, (8, 2))
    assert {len(element["sequences"]) for step in seen.elements for element in step} == {2}
    assert seen.deviation() < TOLERANCE


def test_of_two_responses_it_is_trls_own_loss(tmp_path):
    """TRL's forward pass, its loss and its centring, of pairs that do not end with the padding token."""
    rows = [[[*one[:-1], 5] for one in row[:2]] for row in sequences_of()]
    batch = reward_model.collate_comparisons([grouped(row, [(0, 1)])[0] for row in rows])
    model = model_of()
    ids = torch.cat([batch["input_ids"][0::2], batch["input_ids"][1::2]])
    last = torch.cat([batch["last"][0::2], batch["last"][1::2]])
    mask = torch.arange(ids.shape[1]) <= last[:, None]
    scores = at_last_token(model, batch["input_ids"], batch["last"])
    for centre in (None, 0.3):
        trl: Any = RewardTrainer.__new__(RewardTrainer)
        trl.args = RewardConfig(
            str(tmp_path), use_cpu=True, bf16=False, report_to="none", center_rewards_coefficient=centre
        )
        trl.model, trl._metrics, trl._total_train_tokens, trl._tp_size = model, {}, 0, 1
        trl._metrics = {"train": _Lists(), "eval": _Lists()}
        trl.accelerator = _OneProcess()
        padded = torch.where(mask, ids, TOKENIZER.pad_token_id)
        expected = trl.compute_loss(model, {"input_ids": padded, "attention_mask": mask.long()})
        torch.testing.assert_close(k_wise(scores, batch, centre), expected, rtol=1e-6, atol=1e-6)


class _Lists(dict):
    def __missing__(self, key: str) -> list[Any]:
        return self.setdefault(key, [])


class _OneProcess:
    gather = gather_for_metrics = staticmethod(lambda values: values)


# -- wrong trainers ------------------------------------------------------------------------------------------


def weights(change: Callable[[dict[str, torch.Tensor]], torch.Tensor]) -> Callable[..., Any]:
    """`collate_comparisons` with other weights of the pairs."""
    plain = reward_model.collate_comparisons
    return lambda elements: (batch := plain(elements)) | {"weight": change(batch).to(batch["weight"].dtype)}


def all_pairs_alike(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.full_like(batch["weight"], 1 / len(batch["weight"]))


def not_divided_by_pairs(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.ones_like(batch["weight"])


def without_the_last_pair(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return batch["weight"] * (torch.arange(len(batch["weight"])) < len(batch["weight"]) - 1)


def swapped(rewards: torch.Tensor, batch: dict[str, torch.Tensor], centre: Any = None) -> torch.Tensor:
    return k_wise(-rewards, batch, centre)


def centred(rewards: torch.Tensor, batch: dict[str, torch.Tensor], centre: Any = None) -> torch.Tensor:
    return k_wise(rewards, batch, 0.01)


def read_at_the_edge(model: Any, input_ids: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    return at_last_token(model, input_ids, torch.full_like(last, input_ids.shape[1] - 1))


def read_by_transformers(model: Any, input_ids: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    return Qwen3ForSequenceClassification.forward(model, input_ids).logits[:, 0]


MUTANTS = {
    "all pairs alike": ("collate_comparisons", weights(all_pairs_alike)),
    "not divided by pairs": ("collate_comparisons", weights(not_divided_by_pairs)),
    "without the last pair": ("collate_comparisons", weights(without_the_last_pair)),
    "swapped": ("k_wise", swapped),
    "centred": ("k_wise", centred),
    "read at the edge": ("at_last_token", read_at_the_edge),
    "read by transformers": ("at_last_token", read_by_transformers),
    "pieces in another order": (
        "within_positions",
        lambda lengths, positions: [[*range(len(lengths))][::-1]],
    ),
}


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(name, marks=() if name == "all pairs alike" else pytest.mark.slow) for name in MUTANTS],
)
def test_wrong_trainers_are_told(mutant, tmp_path, monkeypatch):
    name, function = MUTANTS[mutant]
    if mutant == "pieces in another order":  # harmless: results are put back into the rows' order
        monkeypatch.setattr(reward_model, name, function)
        assert Seen(tmp_path, elements_of(), LAYOUTS["one-batch"]).deviation() < TOLERANCE
        monkeypatch.setattr(torch, "argsort", lambda order: torch.arange(len(order)))
    monkeypatch.setattr(reward_model, name, function)
    assert Seen(tmp_path, elements_of(), LAYOUTS["one-batch"]).deviation() > 1e-3


@pytest.mark.slow
def test_the_forward_pass_that_wrappers_call_reads_the_last_token(tmp_path):
    seen = Seen(tmp_path, elements_of(), LAYOUTS["one-batch"])
    assert isinstance(seen.model.forward, MethodType)
    ids = torch.tensor([[5, 6, 7, TOKENIZER.pad_token_id], [5, 6, 0, 0]])
    last = torch.tensor([3, 1])
    with torch.no_grad():
        together = seen.model(ids, last)
        apart = [seen.model(row[None, : end + 1], end[None]) for row, end in zip(ids, last, strict=True)]
    torch.testing.assert_close(together, torch.cat(apart), rtol=0, atol=1e-12)
