"""FSDP2 on CPUs: accelerate shards on accelerators alone, and would train whole models without a word."""

import json
import os
from pathlib import Path
from typing import Any


def shard_on_cpus() -> None:
    """Have accelerate do on CPUs what it does on GPUs, and note in shards_<rank>.json what was spread."""
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.utils import DistributedType

    plain = AcceleratorState.__init__

    def init(self: Any, *args: Any, fsdp_plugin: Any = None, **kwargs: Any) -> None:
        plain(self, *args, fsdp_plugin=fsdp_plugin, **kwargs)
        if fsdp_plugin is not None:
            self.distributed_type, self.fsdp_plugin = DistributedType.FSDP, fsdp_plugin
            if self._mixed_precision != "no":
                fsdp_plugin.set_mixed_precision(self._mixed_precision)
            PartialState._shared_state["distributed_type"] = DistributedType.FSDP

    AcceleratorState.__init__ = init
    note_shares()


def note_shares() -> None:
    """Note in shards_<rank>.json what this process holds of each model in the first training step."""
    from encore.learning.resumable import Resumable
    from encore.models.reward_model import RewardModel

    plain_step, plain_score = Resumable.training_step, RewardModel.score_ids
    scorers: list[Any] = []

    def step(self: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        loss = plain_step(self, model, *args, **kwargs)
        note = Path(f"shards_{os.environ['RANK']}.json")
        if not note.exists():
            kept = self.held()
            beside = {
                "ref_model": getattr(kept.get("reference"), "model", None),
                "critic": getattr(kept.get("critic"), "model", None),
            }
            for one in beside.values():
                require_by_layers(one)
            models = {"model": model, **beside, **{f"scorer{i}": one for i, one in enumerate(scorers)}}
            note.write_text(json.dumps({k: shares(one) for k, one in models.items() if one is not None}))
        return loss

    def score_ids(self: Any, *args: Any) -> Any:
        scorers[:] = self.members
        return plain_score(self, *args)

    Resumable.training_step = step
    RewardModel.score_ids = score_ids


def require_by_layers(model: Any) -> None:
    """Stop if FSDP gathers a whole model at a time and not one layer, by their names of transformers."""
    from torch.distributed.fsdp import FSDPModule

    if isinstance(model, FSDPModule):
        named = [(type(one).__name__.removeprefix("FSDP"), one) for one in model.modules()]
        layers = [one for name, one in named if name in model._no_split_modules]
        assert layers, type(model)
        assert all(isinstance(one, FSDPModule) for one in layers), type(model)


def shares(model: Any) -> dict[str, list[int]]:
    """Name of each weight -> how many of its numbers this process holds, and how many it has."""
    from torch.distributed.tensor import DTensor

    def own(weight: Any) -> int:
        return (weight.to_local() if isinstance(weight, DTensor) else weight).numel()

    return {name: [own(weight), weight.numel()] for name, weight in model.named_parameters()}
