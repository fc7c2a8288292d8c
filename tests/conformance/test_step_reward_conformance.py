"""Process and outcome reward models minimise their papers' cross-entropy, in value and gradient of each step.

The reference knows nothing of TRL, of batches or of padding: it reads each labelled prefix alone, at its last
token. Wrong trainers show that the comparison would tell.
"""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from compare import TOLERANCE
from datasets import Dataset
from reward_cases import TOKENIZER, model_of
from transformers import PrinterCallback, TrainerCallback
from trl import RewardConfig

from encore.learning import reward_model
from encore.learning.reward_model import StepReward
from encore.objectives.losses import right_or_wrong

pytestmark = pytest.mark.slow

# micro-batch size, gradient accumulation
LAYOUTS = {"one-batch": (12, 1), "accumulated": (3, 4), "single": (1, 2)}


def solutions(soft: bool = False, outcome: bool = False) -> list[reward_model.Solution]:
    """Twelve solutions of one to five steps of one to four tokens; some hold the padding token."""
    rng = random.Random(0)
    rows = []
    for _ in range(12):
        ids = [rng.randrange(4, len(TOKENIZER)) for _ in range(rng.randint(1, 6))]
        places = []
        for _ in range(rng.randint(1, 5)):
            ids += [rng.randrange(len(TOKENIZER)) for _ in range(rng.randint(1, 4))]
            places.append(len(ids) - 1)
        places = places[-1:] if outcome else places
        labels = [rng.randint(0, 4) / 4 if soft else float(rng.random() < 0.6) for _ in places]
        rows.append({"ids": ids, "places": places, "labels": labels})
    return rows


def reference(weights: dict[str, torch.Tensor], rows: list[Any]) -> tuple[float, torch.Tensor]:
    """The mean over solutions of the sum over their places, and its gradient, prefix by prefix."""
    model = model_of()
    model.load_state_dict(weights)
    total = torch.zeros((), dtype=torch.float64)
    for row in rows:
        for place, label in zip(row["places"], row["labels"], strict=True):
            hidden = model.model(torch.tensor([row["ids"][: place + 1]])).last_hidden_state[0, -1]
            chance = 1 / (1 + torch.exp(-(hidden @ model.score.weight[0])))
            total = total - label * torch.log(chance) - (1 - label) * torch.log(1 - chance)
    loss = total / len(rows)
    loss.backward()
    return loss.item(), torch.cat([weight.grad.flatten() for weight in model.parameters()])


def deviation(folder: Path, rows: list[Any], layout: tuple[int, int]) -> float:
    """The largest relative difference of loss and gradient from the reference, over three steps."""
    model = model_of()
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
    )
    trainer: Any = StepReward(
        model, args=args, train_dataset=Dataset.from_list(rows), processing_class=TOKENIZER
    )
    trainer.remove_callback(PrinterCallback)
    plain, collate = trainer.training_step, trainer.data_collator
    batches: list[Any] = []
    losses: list[float] = []
    weights: dict[str, torch.Tensor] = {}
    worst: list[float] = []

    def recorded(batch: list[Any]) -> Any:
        batches.append(batch)
        return collate(batch)

    def training_step(*given: Any) -> torch.Tensor:
        loss = plain(*given)
        losses.append(loss.item())
        return loss

    class Watch(TrainerCallback):
        def on_step_begin(self, *given: Any, **kwargs: Any) -> None:
            weights.update({name: w.detach().clone() for name, w in model.named_parameters()})

        def on_pre_optimizer_step(self, *given: Any, **kwargs: Any) -> None:
            step = len(worst) * layout[1]
            seen = [row for batch in batches[step : step + layout[1]] for row in batch]
            expected, slope = reference(weights, seen)
            gradient = torch.cat([w.grad.flatten() for w in model.parameters()])
            off = float((gradient - slope).norm() / slope.norm())
            worst.append(max(off, abs(sum(losses) - expected) / abs(expected)))
            losses.clear()

    trainer.data_collator, trainer.training_step = recorded, training_step
    trainer.add_callback(Watch())
    trainer.train()
    assert len(worst) == 3
    return max(worst)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_process_reward_model(layout, tmp_path):
    assert deviation(tmp_path, solutions(), LAYOUTS[layout]) < TOLERANCE


def test_soft_labels(tmp_path):
    assert deviation(tmp_path, solutions(soft=True), LAYOUTS["accumulated"]) < TOLERANCE


def test_outcome_reward_model(tmp_path):
    assert deviation(tmp_path, solutions(outcome=True), LAYOUTS["accumulated"]) < TOLERANCE


# -- wrong trainers ------------------------------------------------------------------------------------------


def mean_over_places(logits: torch.Tensor, labels: torch.Tensor, solutions: int) -> torch.Tensor:
    return right_or_wrong(logits, labels, len(labels))


def hardened(logits: torch.Tensor, labels: torch.Tensor, solutions: int) -> torch.Tensor:
    return right_or_wrong(logits, (labels > 0).float(), solutions)


def swapped(logits: torch.Tensor, labels: torch.Tensor, solutions: int) -> torch.Tensor:
    return right_or_wrong(-logits, labels, solutions)


def a_token_early(batch: list[Any]) -> dict[str, torch.Tensor]:
    made = COLLATE(batch)
    return made | {"place": made["place"] - 1}


COLLATE = reward_model.collate_solutions
MUTANTS: dict[str, tuple[str, Any]] = {
    "mean over places": ("right_or_wrong", mean_over_places),
    "hardened": ("right_or_wrong", hardened),
    "swapped": ("right_or_wrong", swapped),
    "a token early": ("collate_solutions", a_token_early),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_wrong_trainers_are_told(mutant, tmp_path, monkeypatch):
    name, function = MUTANTS[mutant]
    monkeypatch.setattr(reward_model, name, function)
    assert deviation(tmp_path, solutions(soft=True), LAYOUTS["one-batch"]) > 1e-3
