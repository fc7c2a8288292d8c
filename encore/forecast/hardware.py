"""GPUs by name, and assumptions on how well they are used; each assumption can be changed by its name.

Memory, dense bfloat16 operations and bandwidth come from the makers' data sheets; the links are what
collectives reach of them. results/published/plan_checks.csv compares plans with runs. Of all numbers here
only `mfu` was changed, once, after a look at that table: 0.30 had been too optimistic for most of its rows.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from encore.errors import UserError, nearest

GIB = 2**30
TERA = 1e12
NODE = 8  # GPUs in one machine


@dataclass(frozen=True)
class GPU:
    name: str
    memory: float  # bytes
    flops: float  # dense bfloat16 operations a second, by the data sheet
    bandwidth: float  # bytes a second that the memory delivers
    link: float  # bytes a second that one GPU exchanges with the others of its machine: NVLink, or PCIe


def _gpu(name: str, gib: float, teraflops: float, terabytes: float, link: float) -> GPU:
    return GPU(name, gib * GIB, teraflops * TERA, terabytes * TERA, link * 1e9)


GPUS = {
    gpu.name: gpu
    for gpu in (
        _gpu("A100", 80, 312, 2.04, 200),
        _gpu("A100-40", 40, 312, 1.56, 200),
        _gpu("A40", 48, 150, 0.70, 20),
        _gpu("A6000", 48, 155, 0.77, 20),
        _gpu("L40S", 48, 362, 0.86, 20),
        _gpu("L4", 24, 121, 0.30, 12),
        _gpu("A10G", 24, 70, 0.60, 12),
        _gpu("RTX3090", 24, 71, 0.94, 12),
        _gpu("RTX4090", 24, 165, 1.01, 12),
        _gpu("H20", 96, 148, 4.0, 300),
        _gpu("H100", 80, 989, 3.35, 300),
        _gpu("H800", 80, 989, 3.35, 160),
        _gpu("H200", 141, 989, 4.8, 300),
        _gpu("B200", 180, 2250, 8.0, 600),
    )
}


@dataclass(frozen=True)
class Assumptions:
    """The assumptions of a plan; the fields are keys of the command line."""

    mfu: float = 0.25  # share of the GPU's operations that training and scoring reach, recomputation included
    moe: float = 0.5  # share of `mfu` that is reached if a token visits only some of the experts
    # tokens that one GPU generates in a second; if None, it follows from the memory bandwidth
    rate: float | None = None
    mbu: float = 0.60  # share of the memory bandwidth that decoding reaches
    prefill: float = 0.40  # share of the operations that reading prompts reaches
    length: float = 0.30  # mean length of a completion, as a share of its cap
    prompt: int = 256  # mean tokens of a prompt
    document: float = 0.50  # mean length of a demonstration or of a pair's reply, as a share of the longest
    rows: int = 50_000  # rows of a data set whose size is not known
    rounds: float = 2.0  # rollouts that dynamic sampling draws for one that it keeps
    start: float = 75.0  # seconds until a vLLM engine of a job samples its first token
    price: float | None = None  # price of a GPU for an hour
    between_nodes: float = 40e9  # bytes a second that a GPU exchanges with other machines


USABLE = 0.92  # usable share of a GPU's memory; the rest is for CUDA, NCCL and fragmentation


def change(assumed: Assumptions, changes: Mapping[str, Any]) -> Assumptions:
    """Return `assumed` with the fields in `changes`.

    Raises UserError for a value that is not a number above 0, for a share above 1, and for `rounds` below 1.
    """
    for name, value in changes.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise UserError(f"{name}: expected a number above 0, got {value}")
        if name in ("mfu", "moe", "mbu", "prefill", "length", "document") and value > 1:
            raise UserError(f"{name}: expected a share of at most 1, got {value}")
        if name == "rounds" and value < 1:
            raise UserError(f"{name}: expected a number of at least 1, got {value}")
    return replace(assumed, **changes)


def machine(text: str) -> tuple[int | None, GPU]:
    """Return (number, GPU) from "8xH100", or (None, GPU) from "H100".

    Raises UserError with the nearest known name.
    """
    match = re.fullmatch(r"(?:(\d+)x)?(.+)", str(text).strip(), re.IGNORECASE)
    number, name = (match[1], match[2]) if match else (None, str(text))
    by_case = {known.lower(): gpu for known, gpu in GPUS.items()}
    if name.lower() not in by_case or number == "0":
        raise UserError(f'gpus: no GPU "{text}", expected a text such as 8xH100{nearest(name, list(GPUS))}')
    return int(number) if number else None, by_case[name.lower()]


def named_in(text: str) -> GPU | None:
    """Return the first GPU that is named in a recipe's line on its cost; None if the line names none."""
    match = re.search(rf"\b({'|'.join(sorted(map(re.escape, GPUS), key=len, reverse=True))})\b", text)
    return GPUS[match[1]] if match else None
