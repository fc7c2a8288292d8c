"""Reward models minimise InstructGPT's Eq. 1, in value and gradient of every optimizer step, in float64.

The reference knows nothing of TRL, of batches or of padding: it reads each response alone, at its last token,
and sums the equation pair by pair. Wrong trainers show that it would tell.
"""

import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from types import MethodType
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import PrinterCallback, Qwen3Config, Qwen3ForSequenceClassification, TrainerCallback
from trl import RewardConfig, RewardTrainer

from recipes import reward_models, worlds
from recipes.trainers import reward
from recipes.trainers.reward import Reward, grouped, k_wise, shuffled

TOLERANCE = 1e-5  # relative
TOKENIZER = worlds.tokenizer([worlds.make({"world": "sort"})])
SIZES = (2, 3, 5, 2, 6, 4, 3, 5, 2, 4, 6, 3)  # K of each prompt
# micro-batch size, gradient accumulation
LAYOUTS = {"one-batch": (12, 1), "accumulated": (3, 2), "single-prompts": (1, 4)}


def sequences_of(seed: int = 0) -> list[list[list[int]]]:
    """Responses of each prompt, ranked best first, of 2 to 20 tokens; some end with the padding token."""
    rng = random.Random(seed)
    rows = []
    for size in SIZES:
        prompt = [rng.randrange(4, len(TOKENIZER)) for _ in range(rng.randint(1, 6))]
        tails = [[rng.randrange(len(TOKENIZER)) for _ in range(rng.randint(1, 14))] for _ in range(size)]
        tails[0][-1] = TOKENIZER.pad_token_id  # not told by its number, which a response may hold as well
        rows.append([prompt + tail for tail in tails])
    return rows


def model_of(dtype: Any = torch.float64) -> Any:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(TOKENIZER),
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        num_labels=1,
        pad_token_id=TOKENIZER.pad_token_id,
    )
    model = Qwen3ForSequenceClassification(config)
    with torch.no_grad():  # norms away from 1, rewards away from 0
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model.to(dtype)


def elements_of(arrange: Callable[..., Any] = grouped) -> list[Any]:
    return [
        element
        for sequences in sequences_of()
        for element in arrange(sequences, [*combinations(range(len(sequences)), 2)])
    ]


class Seen:
    """Elements, weights before, loss and gradient of each optimizer step of a `Reward` trainer."""

    def __init__(self, folder: Path, elements: list[Any], layout: tuple[int, int], **options: Any):
        self.model = model_of()
        self.elements: list[list[Any]] = []
        self.weights: list[dict[str, torch.Tensor]] = []
        self.losses: list[float] = []
        self.gradients: list[torch.Tensor] = []
        rows, losses = [], []
        args = RewardConfig(
            output_dir=str(folder),
            per_device_train_batch_size=layout[0],
            gradient_accumulation_steps=layout[1],
            max_steps=3,
            learning_rate=0.1,
            max_grad_norm=0,
            report_to="none",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            **options,
        )
        trainer: Any = Reward(
            self.model, args=args, train_dataset=Dataset.from_list(elements), processing_class=TOKENIZER
        )
        trainer.remove_callback(PrinterCallback)
        plain, collate = trainer.training_step, trainer.data_collator

        def recorded(batch: list[Any]) -> dict[str, torch.Tensor]:
            rows.append(batch)
            return collate(batch)

        def training_step(*args: Any) -> torch.Tensor:
            loss = plain(*args)
            losses.append(loss.item())
            return loss

        class Watch(TrainerCallback):
            def on_step_begin(_, *args: Any, **kwargs: Any) -> None:
                self.weights.append({name: w.detach().clone() for name, w in self.model.named_parameters()})

            def on_pre_optimizer_step(_, *args: Any, **kwargs: Any) -> None:
                self.losses.append(sum(losses))
                self.gradients.append(torch.cat([w.grad.flatten() for w in self.model.parameters()]))
                losses.clear()

        trainer.data_collator, trainer.training_step = recorded, training_step
        trainer.add_callback(Watch())
        trainer.train()
        size = layout[1]
        self.elements = [
            [element for batch in rows[i : i + size] for element in batch]
            for i in range(0, len(self.losses) * size, size)
        ]

    def deviation(self) -> float:
        """The largest relative difference of loss and gradient from the reference, over all steps."""
        worst = 0.0
        for elements, weights, loss, gradient in zip(
            self.elements, self.weights, self.losses, self.gradients, strict=True
        ):
            expected, slope = reference(weights, elements)
            worst = max(worst, abs(loss - expected) / abs(expected))
            worst = max(worst, float((gradient - slope).norm() / slope.norm()))
        return worst


def reference(weights: dict[str, torch.Tensor], elements: list[Any]) -> tuple[float, torch.Tensor]:
    """Eq. 1 as a mean over `elements`, and its gradient; the pairs are all that their ranking makes."""
    model = model_of()
    model.load_state_dict(weights)
    total = torch.zeros((), dtype=torch.float64)
    for element in elements:
        rewards = []
        for ids in element["sequences"]:
            hidden = model.model(torch.tensor([ids])).last_hidden_state[0, -1]
            rewards.append(hidden @ model.score.weight[0])
        size = len(rewards)
        each = torch.zeros((), dtype=torch.float64)
        for better in range(size):
            for worse in range(better + 1, size):
                each = each - torch.log(1 / (1 + torch.exp(rewards[worse] - rewards[better])))
        total = total + each / (size * (size - 1) / 2)
    loss = total / len(elements)
    loss.backward()
    return loss.item(), torch.cat([weight.grad.flatten() for weight in model.parameters()])


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
    batch = reward.collate([grouped(row, [(0, 1)])[0] for row in rows])
    model = model_of()
    ids = torch.cat([batch["input_ids"][0::2], batch["input_ids"][1::2]])
    last = torch.cat([batch["last"][0::2], batch["last"][1::2]])
    mask = torch.arange(ids.shape[1]) <= last[:, None]
    scores = reward_models.at_last_token(model, batch["input_ids"], batch["last"])
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
    """`collate` with other weights of the pairs."""
    plain = reward.collate
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
    return reward_models.at_last_token(model, input_ids, torch.full_like(last, input_ids.shape[1] - 1))


def read_by_transformers(model: Any, input_ids: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    return Qwen3ForSequenceClassification.forward(model, input_ids).logits[:, 0]


MUTANTS = {
    "all pairs alike": ("collate", weights(all_pairs_alike)),
    "not divided by pairs": ("collate", weights(not_divided_by_pairs)),
    "without the last pair": ("collate", weights(without_the_last_pair)),
    "swapped": ("k_wise", swapped),
    "centred": ("k_wise", centred),
    "read at the edge": ("at_last_token", read_at_the_edge),
    "read by transformers": ("at_last_token", read_by_transformers),
    "pieces in another order": ("pieces", lambda lengths, positions: [[*range(len(lengths))][::-1]]),
}


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(name, marks=() if name == "all pairs alike" else pytest.mark.slow) for name in MUTANTS],
)
def test_wrong_trainers_are_told(mutant, tmp_path, monkeypatch):
    name, function = MUTANTS[mutant]
    if mutant == "pieces in another order":  # harmless: results are put back into the rows' order
        monkeypatch.setattr(reward, name, function)
        assert Seen(tmp_path, elements_of(), LAYOUTS["one-batch"]).deviation() < TOLERANCE
        monkeypatch.setattr(torch, "argsort", lambda order: torch.arange(len(order)))
    monkeypatch.setattr(reward, name, function)
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
