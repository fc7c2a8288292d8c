"""The settings that every job makes before it imports torch: telemetry, network, threads, memory, garbage."""

import ctypes
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from encore.errors import UserError
from encore.runtime import gpus

ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")  # settings of torch's GPU memory: new name, old
EXPANDABLE = "expandable_segments:True"
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # parameters of glibc's mallopt, in malloc.h


def quiet_environment(names_hub: bool) -> None:
    """Turn telemetry off, and also access to the Hub unless the job names a model or data set of the Hub.

    Call it before importing torch and the Hugging Face libraries, which read these variables once.
    """
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Waiting threads sleep instead of spinning: on a busy machine two spinning threads are ten times slower
    # than one.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # bitsandbytes warns wherever it is installed
    if not names_hub:
        os.environ["HF_HUB_OFFLINE"] = "1"


def names_hub(config: Any) -> bool:
    """Return whether a configuration has a key `hub` at any depth."""
    if isinstance(config, dict):
        return "hub" in config or any(names_hub(value) for value in config.values())
    return isinstance(config, list) and any(names_hub(value) for value in config)


def stop_in_one_line(say: Callable[[str], None], saved: Callable[[], str]) -> None:
    """Make Ctrl-C or SIGTERM end the process at once with one line, not with a traceback of some import.

    `saved` returns a phrase that says what is kept. Nothing is lost by the sudden end: files are written
    completely or not at all, and the kernel drops the locks. The exit status is 130 or 143, as a shell would
    return. If several processes train, SIGTERM ends a process silently: it then comes from the launcher,
    which reports the process that failed.
    """
    told_to_end = (signal.SIGINT,) if gpus.spread() else (signal.SIGINT, signal.SIGTERM)

    def stop(number: int, _: Any) -> None:
        for signal_number in told_to_end:
            signal.signal(signal_number, signal.SIG_IGN)  # prints one line, however often the key is pressed
        line = f"stopped; {saved()}"
        say(line)
        print(line, file=sys.stderr, flush=True)
        os._exit(128 + number)

    for end_signal in told_to_end:
        signal.signal(end_signal, stop)


def ask_nothing() -> None:
    """Close standard input: a library that asks a question there reads the end of the file, not an answer."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def few_collections() -> None:
    """Collect garbage seldom: the objects that imports make stay, and searching them takes time."""
    gc.set_threshold(50_000, 50, 50)


def keep_memory() -> None:
    """Make glibc keep freed memory, up to a gigabyte, for the next tensor; do nothing without glibc.

    By default most freed memory goes back to the kernel, which clears each page before it gives it out again:
    a tenth of the time of an evaluation. Blocks above 32 MiB, the most that glibc allows, still go back.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(MMAP_THRESHOLD, 32 * 2**20)
        mallopt(TRIM_THRESHOLD, 2**30)


def expandable_segments() -> None:
    """Let torch's blocks of GPU memory grow, unless the user has chosen how torch takes memory.

    Batches are of many widths, and each would otherwise take a new block where no free one is wide enough.
    Call it before importing torch, in a process without an engine of vLLM that sleeps or spans GPUs: vLLM can
    then neither give such blocks back nor share them.
    """
    if not {*ALLOCATOR} & {*os.environ}:
        os.environ[ALLOCATOR[0]] = EXPANDABLE


def keep_imports() -> None:
    """Exempt the objects made so far from garbage collection, including those at the end of the process.

    Call it after the imports, which make hundreds of thousands of objects: each job is a second shorter.
    """
    gc.freeze()


def roles(texts: list[str]) -> dict[str, Path]:
    """Return role -> path, from texts `role=path`. Raises UserError for any other text."""
    pairs = [text.partition("=") for text in texts]
    if bad := [role for role, _, path in pairs if not path]:
        raise UserError(f"--input {bad[0]}: expected ROLE=METRICS_JSON")
    return {role: Path(path) for role, _, path in pairs}
