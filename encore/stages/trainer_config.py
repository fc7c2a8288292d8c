"""The configuration object of transformers or TRL that a recipe's `args` make."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from encore.errors import UserError, first_line
from encore.recipe.kinds.training import TrainingStage
from encore.runtime import gpus, tracking


def arguments(config_class: Any, stage: TrainingStage, workdir: Path, seed: int, **defaults: Any) -> Any:
    """Return an object of `config_class` with a stage's `args`, and with options that all stages have.

    `args` override `defaults`. With `global_batch`, this process gets its part of the batch, by the number of
    processes. There is no tracker but the chosen one, no tqdm, no pinned memory. Gradient checkpointing is
    off unless `args` asks for it, and so is bf16 on a CPU, where it only costs time. Raises UserError for a
    value that the class refuses, and for bf16, TRL's default, on a GPU without it.
    """
    known = {each.name for each in fields(config_class)}  # for PPO, `args` has keys that this class lacks
    args = {
        name: value
        for name, value in stage.args.model_dump(mode="json", exclude_unset=True).items()
        if name in known
    }
    values = {
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_total_limit": 1,
        "gradient_checkpointing": False,
        **defaults,
        **args,
        **(stage.portion(gpus.processes()).args if stage.global_batch else {}),
        "output_dir": str(workdir),
        "seed": seed,
        "data_seed": seed,
        **tracking.arguments(),
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        # no parameter is unused, and TRL's default searches for unused ones at every step
        "ddp_find_unused_parameters": False,
        "logging_nan_inf_filter": False,  # the trainers stop at the first NaN instead of hiding it
        "use_liger_kernel": False,  # models are loaded with Liger's kernels; the trainers would add its loss
    }
    if not torch.cuda.is_available():
        values |= {"use_cpu": True, "bf16": args.get("bf16") or False, "fp16": False}  # a CPU has no fp16
    try:
        made = config_class(**values)
    except (TypeError, ValueError) as error:
        raise UserError(f"args: {first_line(error)}") from error
    if made.bf16 and torch.cuda.is_available():
        _check_bf16()
    return made


def _check_bf16() -> None:
    """Raise UserError if the GPU only emulates bfloat16, which is slow although transformers accepts it."""
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        major, minor = torch.cuda.get_device_capability()
        raise UserError(
            f"args.bf16: true, and {torch.cuda.get_device_name()} has no bfloat16 (compute capability "
            f"{major}.{minor}, 8.0 is needed); set args.bf16 to false"
        )


def batch_size(args: Any) -> int:
    """Return the number of examples in an optimizer step, over all processes."""
    return args.train_batch_size * args.gradient_accumulation_steps * args.world_size


def check_evaluation(args: Any, held_out: int, what: str) -> None:
    """Raise UserError if the trainer should evaluate but there is no held-out data."""
    if args.eval_strategy != "no" and not held_out:
        raise UserError(f"args.eval_strategy: {args.eval_strategy.value}, but there are no {what}")
