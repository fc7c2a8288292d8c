"""The GPUs that a job asks for: none, one, or several, for each of which torchrun starts a process.

All of these processes train; only the first one writes results.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from encore.errors import UserError

VISIBLE = "CUDA_VISIBLE_DEVICES"
SERVING = "ENCORE_VLLM_GPUS"  # names of the GPUs reserved for a vLLM server, as in VISIBLE
WAIT = 10.0  # seconds between two searches for a free GPU
LOCKS = Path(tempfile.gettempdir()) / f"encore-gpus-{os.getuid()}"
# stages whose trainer spreads a batch over processes; other stages use one GPU, or several by their engine
SPREAD = ("pretrain", "sft", "reward_model", "dpo", "grpo", "ppo", "distillation")

# CUDA's major version -> the oldest branch of the NVIDIA driver that runs it (CUDA Toolkit Release Notes,
# "CUDA Toolkit and Corresponding Driver Versions")
DRIVERS = {"12": 525, "13": 580}

# the variables by which `accelerate launch` makes its processes shard by FSDP2, layer by layer
FSDP = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT",
}
# stages whose trainer can spread the weights as well
SHARDED = ("sft", "reward_model", "dpo", "grpo", "ppo")


def rank() -> int:
    """Return the number of this process within its stage: 0 is the first, or the only one."""
    return int(os.environ.get("RANK", "0"))


def first() -> bool:
    """Return whether this process is the one that writes results."""
    return rank() == 0


def spread() -> bool:
    """Return whether torchrun has started this process, as one of several of a stage."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def processes() -> int:
    """Return the number of processes that this stage runs in, on all its nodes."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def nodes() -> int:
    """Return the number of machines of this stage, each of which runs the same number of processes."""
    return processes() // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def shard(how: str) -> None:
    """Make the trainers of this process spread their weights by FSDP2, or not if `how` is "none".

    Call it before the trainers are imported.
    """
    for name in FSDP:
        os.environ.pop(name, None)
    if how == "fsdp":
        os.environ.update(FSDP)


def sharded() -> bool:
    """Return whether the weights of this stage are to be spread over its processes."""
    return os.environ.get("ACCELERATE_USE_FSDP") == "true"


@contextlib.contextmanager
def reserved(asked: int | None, say: Callable[[str], None], serving: int = 0) -> Iterator[list[IO]]:
    """Wait for `asked` GPUs that no other job of this machine uses, make them visible, and hold their locks.

    If `asked` is 0, no GPU is visible, because recipes for the CPU give the same bits everywhere. If it is
    None, or if a scheduler has set CUDA_VISIBLE_DEVICES to exactly `asked` GPUs, the visible GPUs stay the
    same, and no lock is taken. The last `serving` GPUs are for a vLLM server: they are named in `SERVING`,
    and are not visible. Enter this before CUDA starts. Raises UserError if the machine has fewer GPUs, if no
    GPU is left to train, or if CUDA cannot use them.
    """
    held: dict[str, IO] = {}
    if asked is not None:
        names = _visible()
        if len(names) < asked:
            raise UserError(
                f"resources.gpu: {asked} asked, {len(names)} visible here; batch sizes depend on it"
            )
        if not asked or len(names) > asked or not os.environ.get(VISIBLE):
            held = _awaited(names, asked, say)
            os.environ[VISIBLE] = ",".join(held)
    if serving:
        _set_apart(serving)
    if asked and (why := unusable(asked - serving)):
        raise UserError(f"resources.gpu: {asked} asked, and {why}")
    yield list(held.values())
    for lock in held.values():
        lock.close()


def _awaited(names: Sequence[str], asked: int, say: Callable[[str], None]) -> dict[str, IO]:
    """Wait for `asked` free GPUs, take their locks, and return GPU name -> lock."""
    LOCKS.mkdir(exist_ok=True)
    announced = False
    while len(held := _free(names, asked)) < asked:
        if not announced:
            say(f"waiting for GPUs: {asked} asked, {len(held)} of {len(names)} are free")
        announced = True
        held.clear()  # a waiting job holds no GPU, so that no two jobs wait for each other
        time.sleep(WAIT)
    return held


def unusable(count: int) -> str | None:
    """Return why CUDA cannot use `count` of the visible GPUs; None if it can.

    torch.cuda.device_count() is not enough: its number comes from the driver's NVML, which also counts GPUs
    that the driver is too old to use. Torch would then silently train on the CPU.
    """
    import torch  # imported here, because runtime is also imported by code that must not load torch

    child = os.fork()  # a process that has asked CUDA cannot fork processes that use it, as vLLM does
    if not child:
        usable = False
        with contextlib.suppress(Exception):
            usable = torch.cuda.is_available() and torch.cuda.device_count() >= count
        os._exit(0 if usable else 1)
    if os.waitpid(child, 0)[1] == 0:
        return None
    if not torch.version.cuda:
        return f"torch {torch.__version__} is built without CUDA: install the build for CUDA"
    needed = DRIVERS.get(torch.version.cuda.partition(".")[0])
    return (
        f"torch cannot use them: the NVIDIA driver is {driver() or 'unknown to nvidia-smi'}, torch "
        f"{torch.__version__} is built for CUDA {torch.version.cuda}"
        + (f", which needs driver {needed} or newer" if needed else "")
    )


def driver() -> str | None:
    """Return the version of the NVIDIA driver, such as 580.65.06; None if nvidia-smi does not report it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return next(iter(done.stdout.split()), None)


def _free(names: Sequence[str], most: int) -> dict[str, IO]:
    """Take the locks of at most `most` free GPUs, and return GPU name -> lock."""
    held: dict[str, IO] = {}
    for name in names:
        if len(held) < most:
            file = (LOCKS / name).open("a")
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held[name] = file
    return held


def _visible() -> list[str]:
    """Return the names of the GPUs that CUDA would see."""
    import torch  # imported here, because runtime is also imported by code that must not load torch

    visible = os.environ.get(VISIBLE)
    count = torch.cuda.device_count()
    return visible.split(",")[:count] if visible else [str(number) for number in range(count)]


def _set_apart(count: int) -> None:
    """Take the last `count` visible GPUs from this process and its children, and name them in `SERVING`.

    Raises UserError if no GPU is left.
    """
    names = _visible()
    if count >= len(names):
        raise UserError(
            f"vllm_gpus: {count} for the server, {len(names)} visible here; none is left to train"
        )
    os.environ[VISIBLE], os.environ[SERVING] = ",".join(names[:-count]), ",".join(names[-count:])


def launch(processes: int, arguments: Sequence[str], held: Sequence[IO]) -> None:
    """Replace this process by torchrun, which starts a stage in `processes` processes.

    torchrun keeps the locks `held`. `arguments` are the command line of encore.stages.
    """
    for lock in held:
        os.set_inheritable(lock.fileno(), True)
    sys.stdout.flush()
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [sys.executable, *torchrun, "-m", "encore.stages", *arguments]
    os.execv(sys.executable, command)
