"""The policy that a stage starts from: where it comes from, what belongs to it, and how it is saved."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from encore.data import forms
from encore.data.token_ids import end_ids
from encore.learning.callbacks import Keep
from encore.models import language_model
from encore.models.language_model import Source


@dataclass
class Policy:
    """A model with its tokenizer, as loaded from `source`."""

    source: Source
    tokenizer: Any
    model: Any
    saved_dtype: str | None = None  # the key of the stage; None: as trained
    generation: Any = field(init=False)  # the model's as loaded: trainers change it for their rollouts

    def __post_init__(self) -> None:
        self.generation = copy.deepcopy(self.model.generation_config)

    def save(self, workdir: Path) -> None:
        """Write model, tokenizer and the generation config as loaded to `workdir`/final."""
        language_model.save(self.model, folder=workdir / "final", **self._saved)

    def keep(self, config: Mapping[str, Any]) -> Keep | None:
        """How `fit` keeps models for a stage's key `evaluate_every`; None without it."""
        every = config.get("evaluate_every")
        return (every, partial(language_model.keep, **self._saved)) if every else None

    @property
    def _saved(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer, "generation": self.generation, "dtype": self.saved_dtype}


def locate_policy(config: Mapping[str, Any], inputs: Mapping[str, Path]) -> tuple[Source, Any]:
    """Where a stage's policy comes from, the input `policy` or the key `model`; and its tokenizer.

    Where the stage puts its prompts by chat, the tokenizer's end of sequence is the end of a turn.
    """
    source = language_model.locate(config.get("model"), inputs.get("policy"))
    tokenizer = language_model.load_tokenizer(source)
    if forms.chats(config):
        forms.end_turns(tokenizer)
    return source, tokenizer


def load_policy(config: Mapping[str, Any], inputs: Mapping[str, Path], **options: Any) -> Policy:
    """The policy that a stage starts from; `options` are those of `from_pretrained`.

    Where the stage puts its prompts by chat, the end of a turn ends its completions from here on.
    """
    source, tokenizer = locate_policy(config, inputs)
    model = language_model.load(source, **options)
    if forms.chats(config):
        model.generation_config.eos_token_id = end_ids(model.generation_config, tokenizer)
    return Policy(source, tokenizer, model, config.get("saved_dtype"))


def load_reference(policy: Policy, inputs: Mapping[str, Path], **options: Any) -> Any:
    """The reference model: the input `reference`, or the policy as it starts.

    Raises UserError where its tokenizer is not the policy's.
    """
    source = policy.source
    if "reference" in inputs:
        source = language_model.locate(None, inputs["reference"])
        names = (f"the reference {source.place}", f"the policy {policy.source.place}")
        language_model.same_tokenizer(language_model.load_tokenizer(source), policy.tokenizer, names)
    return language_model.load(source, **options)


def positions(model: Any) -> int | None:
    """How many tokens fit into a model's context; None where its configuration does not say."""
    return getattr(model.config, "max_position_embeddings", None)


def take_model_options(args: Any) -> dict[str, Any]:
    """The `model_init_kwargs` of TRL's arguments, removed there: TRL refuses them with a loaded model."""
    options, args.model_init_kwargs = args.model_init_kwargs or {}, None
    return options
