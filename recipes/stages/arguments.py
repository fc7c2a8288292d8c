"""From a recipe's `args` to a configuration object: transformers', TRL's, or a stage's own."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recipes.errors import UserError, nearest
from recipes.spec.schema import schema


def arguments(
    config_class: Any, args: Mapping[str, Any], defaults: Mapping[str, Any], workdir: Path, seed: int
) -> Any:
    """`config_class(**args)` with this suite's defaults beneath.

    No tracker, no tqdm, no pinned memory; without a GPU no bf16 and no gradient checkpointing, which only
    cost time there. Raises UserError for an unknown or reserved field and for values that the class refuses.
    """
    import torch

    known = [field.name for field in dataclasses.fields(config_class) if field.init]
    for name in args:
        if name in schema()["x-reserved"]:
            raise UserError(f"args.{name}: set by the stage itself; remove it")
        if name not in known:
            raise UserError(f"args.{name}: unknown field of {config_class.__name__}{nearest(name, known)}")
    values = {
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_total_limit": 1,
        "gradient_checkpointing": False,
        **defaults,
        **args,
        "output_dir": str(workdir),
        "seed": seed,
        "data_seed": seed,
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "ddp_find_unused_parameters": False,  # there are none; TRL's default looks for them at every step
        "logging_nan_inf_filter": False,  # the trainers stop at the first NaN instead of hiding it
    }
    if not torch.cuda.is_available():
        values |= {"use_cpu": True, "bf16": False, "fp16": False, "gradient_checkpointing": False}
    try:
        return config_class(**values)
    except (TypeError, ValueError) as error:
        raise UserError(f"args: {str(error).strip().splitlines()[0]}") from error


def plain(config_class: Any, args: Mapping[str, Any]) -> Any:
    """`config_class(**args)` for a dataclass of this suite, which checks its own values.

    Raises UserError for an unknown field and for a missing one.
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
