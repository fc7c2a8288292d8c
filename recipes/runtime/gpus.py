"""As many GPUs as a job asks for: none, one, or several by torchrun, which starts a process for each.

Of these processes the first alone writes results; all of them train.
"""

import contextlib
import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from recipes.errors import UserError

VISIBLE = "CUDA_VISIBLE_DEVICES"
WAIT = 10.0  # seconds between two looks for a free GPU
LOCKS = Path(tempfile.gettempdir()) / f"encore-gpus-{os.getuid()}"
# stages whose trainer spreads a batch over processes; the others use one GPU, or several by their engine
SPREAD = ("pretrain", "sft", "reward_model", "dpo", "grpo", "ppo")


def rank() -> int:
    """Which process of its stage this is; 0 is the only one, or the first."""
    return int(os.environ.get("RANK", "0"))


def first() -> bool:
    """Whether this process writes."""
    return rank() == 0


def spread() -> bool:
    """Whether this process is one of those that torchrun has started for a stage."""
    return "TORCHELASTIC_RUN_ID" in os.environ


@contextlib.contextmanager
def reserved(asked: int | None, say: Callable[[str], None]) -> Iterator[list[IO]]:
    """Make `asked` GPUs visible to this process that no other job of this machine has, and hold their locks.

    With 0 none is visible: what a recipe does on the CPU is the same everywhere, to the bit. With None all
    are. A scheduler that has set CUDA_VISIBLE_DEVICES to so many is obeyed. To be entered before CUDA starts.
    Raises UserError where there are not so many.
    """
    if asked is None:
        yield []
        return
    names = visible()
    if len(names) < asked:
        raise UserError(f"resources.gpu: {asked} asked, {len(names)} visible here; batch sizes depend on it")
    if asked and len(names) == asked and os.environ.get(VISIBLE):
        yield []
        return
    LOCKS.mkdir(exist_ok=True)
    told = False
    while len(held := _free(names, asked)) < asked:
        if not told:
            say(f"waiting for GPUs: {asked} asked, {len(held)} of {len(names)} are free")
        told = True
        held.clear()  # nobody waits for one while holding another
        time.sleep(WAIT)
    os.environ[VISIBLE] = ",".join(held)
    yield list(held.values())
    for lock in held.values():
        lock.close()


def _free(names: Sequence[str], most: int) -> dict[str, IO]:
    """Name -> lock of at most so many GPUs that nobody has."""
    held: dict[str, IO] = {}
    for name in names:
        if len(held) < most:
            file = (LOCKS / name).open("a")
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held[name] = file
    return held


def visible() -> list[str]:
    """The names of the GPUs that CUDA would see."""
    import torch

    given = os.environ.get(VISIBLE)
    count = torch.cuda.device_count()
    return given.split(",")[:count] if given else [str(number) for number in range(count)]


def launch(kind: str, processes: int, arguments: Sequence[str], held: Sequence[IO]) -> None:
    """Become torchrun with so many processes of a stage; it keeps the locks that this process has."""
    for lock in held:
        os.set_inheritable(lock.fileno(), True)
    sys.stdout.flush()
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [sys.executable, *torchrun, "-m", f"recipes.stages.{kind}", *arguments]
    os.execv(sys.executable, command)
