"""The vLLM server of a stage with `vllm_mode: server`, on the GPUs reserved for it."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from encore.errors import UserError
from encore.models import language_model
from encore.recipe.kinds.rollout import RolloutStage
from encore.runtime import gpus, nodes
from encore.runtime.ports import free_ports
from encore.sampling import vllm_server
from encore.stages.job import Job
from encore.stages.policy import locate_policy

LOG = "vllm.log"  # file beside metrics.json


@contextmanager
def server(stage: RolloutStage, job: Job, args: Any) -> Iterator[Callable[[], None]]:
    """Start a vLLM server if `args`, a GRPOConfig, ask for one, and stop it after the `with` block.

    Yields a function that waits until the server answers. Call it before the trainer is made, and after
    loading whatever can be loaded meanwhile. `args` get the server's address. If a stage has several
    processes, only the first starts the server. If a machine is reserved for the server, the server runs
    there and listens to the cluster's network. Raises UserError if there is no GPU for the server beside the
    GPUs that train.
    """
    if not (args.use_vllm and args.vllm_mode == "server" and gpus.first()):
        yield lambda: None
        return
    names = os.environ.get(gpus.SERVING, "")
    if torch.cuda.is_available() and not names:
        raise UserError("vllm_gpus: missing; the vLLM server needs GPUs beside those that train")
    source, _ = locate_policy(stage, job.inputs)
    machine = nodes.server()
    host = nodes.address(machine) if machine else vllm_server.HOST
    port, args.vllm_group_port = free_ports(2)  # free on this machine, and probably unused on another
    args.vllm_server_base_url = f"http://{host}:{port}"
    _bypass_proxies(host)
    workers = len(names.split(",")) if names else 0
    command = vllm_server.command(
        language_model.folder_of(source), host, port, workers, precision(args), args.seed, stage.args
    )
    environment = vllm_server.environment(names, stage.deterministic)
    if machine:
        command = [*nodes.step([machine], workers), *command]
        environment = nodes.environment_of_step(environment)
    started = vllm_server.Server(command, environment, host, port, job.out.with_name(LOG), job.progress.say)
    try:
        yield partial(started.ready, args.vllm_server_timeout)
    finally:
        started.close()


def precision(args: Any) -> str:
    """Return the dtype of the policy in training, so that vLLM samples from the same distribution."""
    if args.bf16:
        return "bfloat16"
    if args.fp16:
        return "float16"
    dtype = str((args.model_init_kwargs or {}).get("dtype", "float32"))
    return dtype.removeprefix("torch.")


def _bypass_proxies(host: str) -> None:
    """Make TRL's client speak to the server directly; otherwise it would obey http_proxy."""
    for name in ("no_proxy", "NO_PROXY"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), host]))
