"""The policy that a stage starts from: how it is loaded, what belongs to it, and how it is saved."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from encore.data import forms
from encore.data.token_ids import end_ids
from encore.learning.fit import fit
from encore.models import language_model, lora
from encore.models.language_model import Source
from encore.models.quantized import loading
from encore.recipe.kinds import LabelStage, SftStage
from encore.recipe.kinds.pairs import PairsStage
from encore.recipe.kinds.rollout import RolloutStage
from encore.recipe.kinds.stage import FromPolicy
from encore.recipe.kinds.training import TuningStage
from encore.runtime.provenance import Fit
from encore.stages.job import Job


@dataclass
class Policy:
    """A model with its tokenizer, as loaded from `source`."""

    source: Source
    tokenizer: Any
    model: Any
    saved_dtype: str | None = None  # the stage's key `saved_dtype`; None: the dtype of training
    # the generation config as it was loaded, because trainers change the model's for their rollouts
    generation: Any = field(init=False)

    def __post_init__(self) -> None:
        self.generation = copy.deepcopy(self.model.generation_config)

    def train(self, trainer: Any, stage: SftStage | PairsStage | RolloutStage, job: Job) -> Fit:
        """Train to the last step, and return how it went; `model` then has the trained weights."""
        every, keep = stage.evaluate_every, partial(language_model.keep, **self._saved)
        done = fit(trainer, job.progress, (every, keep) if every else None)
        self.model = lora.merged(trainer.model, self.saved_dtype)
        return done

    def save(self, workdir: Path) -> None:
        """Write model, tokenizer and the generation config as it was loaded to `workdir`/final."""
        language_model.save(self.model, folder=workdir / "final", **self._saved)

    @property
    def _saved(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer, "generation": self.generation, "dtype": self.saved_dtype}


def locate_policy(stage: FromPolicy | LabelStage, inputs: Mapping[str, Path]) -> tuple[Source, Any]:
    """Return the source of a stage's policy, and its tokenizer.

    The source is the input `policy`, or the stage's key `model`. If the stage uses the chat template, the
    tokenizer's end-of-sequence token is the token that ends a turn.
    """
    model = stage.model if isinstance(stage, FromPolicy) else None
    source = language_model.locate(inputs.get("policy") or model)
    tokenizer = language_model.load_tokenizer(source)
    if stage.by_chat:
        forms.end_turns(tokenizer)
    return source, tokenizer


def load_policy(stage: FromPolicy, inputs: Mapping[str, Path], **options: Any) -> Policy:
    """Return the policy that a stage starts from; `options` are the options of `from_pretrained`.

    If the stage uses the chat template, the token that ends a turn also ends the policy's completions.
    """
    source, tokenizer = locate_policy(stage, inputs)
    model = language_model.load(source, **options)
    if stage.by_chat:
        model.generation_config.eos_token_id = end_ids(model.generation_config, tokenizer)
    return Policy(source, tokenizer, model, getattr(stage, "saved_dtype", None))


def load_reference(
    policy: Policy, inputs: Mapping[str, Path], role: str = "reference", **options: Any
) -> Any:
    """Return the reference model, which is the input `role`, or else a copy of the initial policy.

    Raises UserError if the reference and the policy have different tokenizers.
    """
    source = policy.source
    if role in inputs:
        source = language_model.locate(inputs[role])
        names = (f"the {role} {source.place}", f"the policy {policy.source.place}")
        language_model.same_tokenizer(language_model.load_tokenizer(source), policy.tokenizer, names)
    return language_model.load(source, **options)


def positions(model: Any) -> int | None:
    """Return the number of tokens in a model's context; None if the configuration does not say."""
    return getattr(model.config, "max_position_embeddings", None)


def loading_options(stage: TuningStage, args: Any) -> dict[str, Any]:
    """Return the options of `pretrained.model` for the models of a stage, from its `args` and `lora`.

    `args` is a configuration of TRL. Its `model_init_kwargs` are set to None, because TRL refuses them beside
    a loaded model.
    """
    options, args.model_init_kwargs = args.model_init_kwargs or {}, None
    return loading(stage.lora, args, options) | {"liger": stage.args.use_liger_kernel}
