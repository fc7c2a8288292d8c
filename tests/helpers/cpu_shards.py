"""FSDP2 on CPUs: accelerate shards on accelerators alone, and would train whole models without a word."""

import json
import os
from pathlib import Path
from typing import Any


def shard_on_cpus() -> None:
    """Have accelerate do on CPUs what it does on GPUs, and note in shards_<rank>.json what was spread."""
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.utils import DistributedType

    from recipes.trainers.resume import ExactResume

    plain, plain_step = AcceleratorState.__init__, ExactResume.training_step

    def init(self: Any, *args: Any, fsdp_plugin: Any = None, **kwargs: Any) -> None:
        plain(self, *args, fsdp_plugin=fsdp_plugin, **kwargs)
        if fsdp_plugin is not None:
            self.distributed_type, self.fsdp_plugin = DistributedType.FSDP, fsdp_plugin
            PartialState._shared_state["distributed_type"] = DistributedType.FSDP

    def step(self: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        note = Path(f"shards_{os.environ['RANK']}.json")
        if not note.exists():
            note.write_text(json.dumps(shares(model)))
        return plain_step(self, model, *args, **kwargs)

    AcceleratorState.__init__ = init
    ExactResume.training_step = step


def shares(model: Any) -> dict[str, list[int]]:
    """Name of each weight -> how many of its numbers this process holds, and how many it has."""
    from torch.distributed.tensor import DTensor

    return {
        name: [(w.to_local() if isinstance(w, DTensor) else w).numel(), w.numel()]
        for name, w in model.named_parameters()
    }
