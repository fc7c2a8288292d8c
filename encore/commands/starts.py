"""The model that a new recipe starts from: whether it has a chat template, and how large it is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from encore.errors import UserError
from encore.forecast import model_size
from encore.recipe.machine import Elsewhere, FolderModel, GgufModel, HubModel

TEMPLATES = ("chat_template.jinja", "tokenizer_config.json")  # files that may contain a chat template
# part of the name of a model that chats
CHATS = re.compile(r"instruct|chat|(?<![a-z])it(?![a-z])", re.IGNORECASE)
REAL = 20e6  # parameters of the smallest model that is not a toy
# upper bound of a model's parameters -> learning rate to begin GRPO with, on all weights. 1e-6 is the rate
# of DAPO for 32B (arXiv 2503.14476 §4.1) and of Dr. GRPO for 1.5B and 7B; smaller models take larger rates.
RATES = {REAL: 1.0e-4, 300e6: 5.0e-6, 1e9: 2.0e-6, float("inf"): 1.0e-6}


@dataclass(frozen=True)
class Start:
    """The model that a new recipe starts from."""

    model: Mapping[str, str]  # the recipe's key `model`
    chats: bool  # whether its tokenizer has a chat template
    parameters: int | None  # None if it is not known on this machine

    @property
    def is_toy(self) -> bool:
        """Whether the model is as small as the models that the suite makes."""
        return self.parameters is not None and self.parameters < REAL

    @property
    def rate(self) -> str:
        """The learning rate of GRPO, as text for the YAML file."""
        size = REAL if self.parameters is None else self.parameters
        rate = next(rate for most, rate in RATES.items() if size < most)
        return f"{rate:.1e}".replace("e-0", "e-")


def of_model(model: Elsewhere) -> Start:
    """Return the facts about a model that a recipe starting from it needs."""
    try:
        parameters = model_size.of_model(model).parameters
    except UserError:  # the configuration of a model of the Hub is not in the cache
        if not isinstance(model, HubModel):
            raise
        parameters = None
    return Start(model.model_dump(), _chats(model), parameters)


def _chats(model: Elsewhere) -> bool:
    """Return whether a model has a chat template, by its files or, without files here, by its name."""
    if isinstance(model, GgufModel):
        from gguf import GGUFReader  # imported here, because it takes half a second

        return "tokenizer.chat_template" in GGUFReader(model.gguf).fields
    if isinstance(model, FolderModel):
        return any(_has_template(Path(model.path) / name) for name in TEMPLATES)
    return bool(CHATS.search(model.name))


def _has_template(file: Path) -> bool:
    """Return whether a file of a model's folder has a chat template."""
    if not file.is_file():
        return False
    return file.suffix == ".jinja" or '"chat_template"' in file.read_text(encoding="utf-8", errors="replace")
