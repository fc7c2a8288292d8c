"""The vLLM engine that TRL starts in the stage's own process, with `vllm_mode: colocate`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trl.generation import vllm_generation

from encore.errors import UserError, whole
from encore.runtime.ports import free_ports
from encore.sampling import vllm_server
from encore.stages.serving import precision

# difference between the seeds of two engines of a stage, so that no two stages share a seed
GROUP_STRIDE = 1_000_003


@contextmanager
def engine(args: Any) -> Iterator[None]:
    """Set the dtype and the seed of the vLLM engine that TRL starts in the `with` block.

    Does nothing if `args`, a GRPOConfig, ask for no such engine. TRL states no dtype, so vLLM would take
    bfloat16 for weights in float32. TRL's seed is the same for all seeds of a stage, and vLLM makes it the
    seed of the whole process. Raises UserError if the engine does not start.
    """
    if not (args.use_vllm and args.vllm_mode == "colocate"):
        yield
        return
    plain, dtype = vllm_generation.LLM, precision(args)
    if "MASTER_PORT" not in os.environ:  # torchrun sets it; otherwise two stages would share TRL's port 29500
        (port,) = free_ports(1)
        os.environ |= {"MASTER_ADDR": vllm_server.HOST, "MASTER_PORT": str(port)}

    def start(**options: Any) -> Any:
        # TRL's seed is the number of a group of processes that share an engine and sample the same
        seed = args.seed + GROUP_STRIDE * options["seed"]
        try:
            return plain(**options | {"dtype": dtype, "seed": seed})
        except (RuntimeError, ValueError) as error:
            raise UserError(f"args.use_vllm: vLLM does not start: {whole(error)}") from error

    setattr(vllm_generation, "LLM", start)  # noqa: B010 - the attribute exists only where vLLM is installed
    try:
        yield
    finally:
        setattr(vllm_generation, "LLM", plain)  # noqa: B010
