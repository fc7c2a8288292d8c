"""ZeRO-3 on CPUs: accelerate hands models to DeepSpeed on accelerators alone, and would train whole ones."""

import os
from typing import Any


def zero3_on_cpus() -> None:
    """Have accelerate do on CPUs what it does on GPUs, and note in shards_<rank>.json what was spread."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.utils import DistributedType
    from cpu_shards import note_shares

    deepspeed.comm.torch.build_shm_op = lambda: None  # which would be compiled; without it, gloo
    plain = AcceleratorState.__init__

    def init(self: Any, *args: Any, deepspeed_plugin: Any = None, **kwargs: Any) -> None:
        fresh = not AcceleratorState._shared_state
        if deepspeed_plugin is not None:
            PartialState._shared_state["distributed_type"] = DistributedType.DEEPSPEED
            deepspeed.init_distributed(dist_backend="gloo", verbose=False)
        plain(self, *args, deepspeed_plugin=deepspeed_plugin, **kwargs)
        if deepspeed_plugin is not None and fresh:
            self.distributed_type, self.deepspeed_plugins = DistributedType.DEEPSPEED, deepspeed_plugin
            deepspeed_plugin.set_mixed_precision(kwargs.get("mixed_precision") or "no")
            deepspeed_plugin.select(_from_accelerator_state=True)

    AcceleratorState.__init__ = init
    note_shares()
