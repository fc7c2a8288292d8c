"""Checks of a stage's input before the stage runs: tokens that end a reply, and rewards of gold answers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import GenerationConfig

from encore.data import forms, prompts
from encore.data.token_ids import end_ids
from encore.forecast.trial import Config
from encore.models.language_model import Source, configuration, folder_of, load_tokenizer
from encore.recipe.kinds import LabelStage
from encore.recipe.kinds.stage import FromPolicy
from encore.recipe.task import Asked
from encore.rewards import rules
from encore.runtime import health, reward_checks
from encore.stages.job import typed
from encore.stages.policy import locate_policy

VERIFIED = (
    "grpo",
    "ppo",
    "distillation",
    "policy_gradient",
    "rejection_sampling",
)  # kinds of stage whose task may have a verifier


def of_stage(config: Config, inputs: Mapping[str, Path], seed: int) -> list[health.Check]:
    """Return the checks of a stage's input; [] without a policy.

    Raises UserError if the policy cannot load.
    """
    if config["run"] == "pretrain" or ("policy" not in inputs and "model" not in config):
        return []
    stage, _ = typed(config["run"], config)
    assert isinstance(stage, FromPolicy | LabelStage)  # stages of other kinds have no policy
    source, tokenizer = locate_policy(stage, inputs)
    checks = [ends(source, tokenizer, stage.by_chat)]
    parts = stage.parts if stage.run in VERIFIED else {}
    for name, part in parts.items():
        if isinstance(part, Asked) and part.questions.is_verified:
            check = _gold_of_next(part, tokenizer, seed)
            checks.append({**check, "check": f"{check['check']}/{name}".rstrip("/")})
    return checks


def ends(source: Source, tokenizer: Any, by_chat: bool) -> health.Check:
    """Check that the model knows the end of a reply, and that tokenizer and generation config agree on it.

    `by_chat`: prompts have a chat template, and the end-of-sequence token of `tokenizer` is the template's
    end of a turn, which ends replies beside the tokens of the generation config.
    """
    bare, config = load_tokenizer(source), configuration(source)
    generation = _generation(source, config)
    eos = generation.eos_token_id
    listed = [] if eos is None else eos if isinstance(eos, list) else [eos]
    ids = end_ids(generation, tokenizer)
    words = ", ".join(f"{tokenizer.convert_ids_to_tokens(end)!r} ({end})" for end in ids)
    size = config.get_text_config().vocab_size
    wrong = ""
    if bare.eos_token_id is None:
        wrong = "the tokenizer names no end of sequence: set eos_token in tokenizer_config.json"
    elif outside := [end for end in ids if end >= size]:
        wrong = f"end {outside[0]} is no token of the model, which has {size}: is it the model's tokenizer?"
    elif listed and bare.eos_token_id not in listed:
        wrong = (
            f"the tokenizer ends texts with {bare.eos_token!r} ({bare.eos_token_id}), generation_config.json "
            f"replies with {listed}: make them agree, or training teaches another end than sampling awaits"
        )
    message = wrong or f"replies end with {words}{', the end of a turn among them' if by_chat else ''}"
    return health.make_check("ends", not wrong, len(ids), 1, message, "error")


def _generation(source: Source, config: Any) -> Any:
    try:
        return GenerationConfig.from_pretrained(folder_of(source))
    except OSError:  # a checkpoint need not have a generation config
        return GenerationConfig.from_model_config(config)


def _gold_of_next(part: Asked, tokenizer: Any, seed: int) -> health.Check:
    count, task = min(part.problems or reward_checks.CHECKED, reward_checks.CHECKED), part.questions
    world = task.make_world()
    problems = prompts.of_task(task, forms.of(part.form, tokenizer), count if world else None, seed)
    rows = problems.select(range(min(count, len(problems)))).to_list()
    (accuracy,) = rules.build(["accuracy"], world, seed, verifies=task.verifies)
    return reward_checks.crossed(accuracy, rows)
