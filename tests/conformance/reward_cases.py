"""Watches the trainer of reward models at work, and puts what it did beside InstructGPT's Eq. 1, in float64.

The reference knows nothing of TRL, of batches or of padding: it reads each response alone, at its last token,
and sums the equation pair by pair.
"""

import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, Qwen3Config, Qwen3ForSequenceClassification, TrainerCallback
from trl import RewardConfig

from encore import worlds
from encore.learning.reward_model import Reward, grouped

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
