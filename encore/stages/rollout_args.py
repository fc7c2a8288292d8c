"""The arguments of TRL for stages with rollouts, and the vLLM engine or server that such a stage may have."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from trl import GRPOConfig

from encore.errors import UserError
from encore.recipe.grpo_args import GrpoArgs
from encore.recipe.kinds.rollout import RolloutStage
from encore.runtime import gpus
from encore.stages import colocated, sent_weights, serving
from encore.stages.job import Job
from encore.stages.trainer_config import arguments

AnyRollouts = TypeVar("AnyRollouts", bound=RolloutStage)


@contextmanager
def started(stage: RolloutStage, job: Job, **defaults: Any) -> Iterator[tuple[Any, Callable[[], None]]]:
    """Yield the arguments of TRL, and a function that waits for the stage's vLLM server, if it has one."""
    defaults = defaults_of(stage.args) | defaults
    args = arguments(GRPOConfig, _as_one_group(stage), job.workdir, job.seed, **defaults)
    if stage.args.num_generations == 1:
        args.num_generations = 1
    check_cache(args)
    with sent_weights.as_saved(), colocated.engine(args), serving.server(stage, job, args) as answering:
        yield args, answering


def _as_one_group(stage: AnyRollouts) -> AnyRollouts:
    """Return the stage, with the whole rollout as one group if groups have size 1, which TRL refuses."""
    if stage.args.num_generations != 1:
        return stage
    whole = stage.completions(gpus.processes())
    return stage.model_copy(update={"args": stage.args.model_copy(update={"num_generations": whole})})


def defaults_of(args: GrpoArgs) -> dict[str, Any]:
    """Return the defaults for TRL's arguments that differ from TRL's own; a recipe's `args` replace them."""
    # on a CPU a static cache is a tenth faster than one that grows by copying
    growing = torch.cuda.is_available() or args.bf16
    cache = {} if growing else {"cache_implementation": "static"}
    # a large model loads for minutes, while a vLLM server that fails is noticed at once
    return {"save_steps": 20, "vllm_server_timeout": 1200.0, **cache}


def check_cache(args: Any) -> None:
    """Raise UserError if a static key-value cache would mix dtypes: autocast makes only the values bf16."""
    mixed = (args.bf16 or args.fp16) and "dtype" not in (args.model_init_kwargs or {})
    if mixed and "static" in (args.cache_implementation or ""):
        raise UserError(
            f"args.cache_implementation: {args.cache_implementation} holds keys and values in one precision, "
            "but bf16 mixes two; remove it, or set bf16 to false"
        )
