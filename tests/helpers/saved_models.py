"""Models on disk, as stages leave them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipes.models import reward_model


def save_reward_model(
    members: Sequence[Any], tokenizer: Any, bias: Sequence[float], scale: Sequence[float], folder: Path
) -> None:
    partial = reward_model.begin(folder)
    for number, member in enumerate(members):
        reward_model.add(partial, number, member)
    reward_model.finish(partial, tokenizer, bias, scale, folder)
