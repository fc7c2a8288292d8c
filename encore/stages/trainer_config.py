"""From a recipe's `args` to a configuration object: transformers', TRL's, or a stage's own."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from encore.errors import UserError, first_line, nearest
from encore.recipe.args import check_refused
from encore.recipe.batch import of_process
from encore.runtime import gpus, tracking


def arguments(
    config_class: Any, stage: Mapping[str, Any], defaults: Mapping[str, Any], workdir: Path, seed: int
) -> Any:
    """`config_class` with a stage's `args`, over its `defaults` and those that all stages have.

    With `global_batch`, this process gets its part of it, as there are so many processes now.
    No tracker but the one chosen, no tqdm, no pinned memory. Bf16 and gradient checkpointing, which only cost
    time on a CPU, are off there unless `args` asks for them. Raises UserError for a field that is unknown or
    reserved, or has a value that the class refuses, and for bf16, TRL's default, on a GPU without it.
    """
    args = stage["args"]
    check_refused(args, "args")
    known = [field.name for field in dataclasses.fields(config_class) if field.init]
    for name in args:
        if name not in known:
            raise UserError(f"args.{name}: unknown field of {config_class.__name__}{nearest(name, known)}")
    values = {
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_total_limit": 1,
        "gradient_checkpointing": False,
        **defaults,
        **args,
        **of_process(stage, gpus.processes()),
        "output_dir": str(workdir),
        "seed": seed,
        "data_seed": seed,
        **tracking.arguments(),
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "ddp_find_unused_parameters": False,  # no parameter is unused; TRL's default looks at every step
        "logging_nan_inf_filter": False,  # the trainers stop at the first NaN instead of hiding it
    }
    if not torch.cuda.is_available():
        values |= {"use_cpu": True, "bf16": args.get("bf16") or False, "fp16": False}  # no fp16 on a CPU
    try:
        made = config_class(**values)
    except (TypeError, ValueError) as error:
        raise UserError(f"args: {first_line(error)}") from error
    if made.bf16 and torch.cuda.is_available():
        _check_bf16()
    return made


def _check_bf16() -> None:
    """Raise UserError where the GPU only emulates bfloat16, which transformers accepts and which is slow."""
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        major, minor = torch.cuda.get_device_capability()
        raise UserError(
            f"args.bf16: true, and {torch.cuda.get_device_name()} has no bfloat16 (compute capability "
            f"{major}.{minor}, 8.0 is needed); set args.bf16 to false"
        )


def plain(config_class: Any, args: Mapping[str, Any]) -> Any:
    """`config_class(**args)` for a dataclass of ours, which checks its own values.

    Raises UserError for an unknown or missing field.
    """
    fields = {field.name: field for field in dataclasses.fields(config_class)}
    for name in args:
        if name not in fields:
            hint = nearest(name, [*fields])
            raise UserError(f"args.{name}: unknown field of {config_class.__name__}{hint}")
    for name, field in fields.items():
        if name not in args and field.default is dataclasses.MISSING:
            raise UserError(f"args.{name}: missing")
    return config_class(**args)


def batch_size(args: Any) -> int:
    """Examples that one optimizer step takes, over all processes."""
    return args.train_batch_size * args.gradient_accumulation_steps * args.world_size


def check_evaluation(args: Any, held_out: int, what: str) -> None:
    """Raise UserError if the trainer is to evaluate, and there is no held-out data."""
    if args.eval_strategy != "no" and not held_out:
        raise UserError(f"args.eval_strategy: {args.eval_strategy.value}, but there are no {what}")
