"""Models on disk, as stages leave them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification

from encore.models import language_model
from encore.models import reward_model as reward_models
from encore.runtime import files, sentinel


def save_reward_model(
    members: Sequence[Any], tokenizer: Any, bias: Sequence[float], scale: Sequence[float], folder: Path
) -> None:
    partial = reward_models.begin(folder)
    for number, member in enumerate(members):
        reward_models.add(partial, number, member)
    reward_models.finish(partial, tokenizer, bias, scale, folder)


def reward_model(
    folder: Path, tokenizer: Any = None, members: int = 1, name: str = "reward_model", seed: int = 0
) -> None:
    """Put the product of a stage `reward_model` into `folder`: the base model's backbone, random heads."""
    final = folder / "checkpoints/pretrain/final"
    heads = []
    for member in range(seed, seed + members):
        torch.manual_seed(member)
        heads.append(AutoModelForSequenceClassification.from_pretrained(final, num_labels=1))
        torch.nn.init.normal_(heads[-1].score.weight)
    words = tokenizer or language_model.load_tokenizer(language_model.Source(str(final), None, ""))
    place = folder / "checkpoints" / name / "final"
    save_reward_model(heads, words, [0.25] * members, [2.0] * members, place)
    record = {"model": f"checkpoints/{name}/final", "digest": sentinel.digest(place), "config": {}}
    files.write_json(folder / "results" / name / "metrics.json", record)
