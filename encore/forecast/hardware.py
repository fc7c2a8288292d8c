"""GPUs by name, and what is assumed of how well they are used; each assumption can be changed by its name.

Memory, dense bfloat16 operations and bandwidth are those of the makers' data sheets; the links are what
collectives reach of them. What a plan is worth stands in results/published/plan_checks.csv; of all numbers
here `mfu` alone was moved, once, after a look at that table: 0.30 had been too fast for most of its rows.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from encore.errors import UserError, nearest

GIB = 2**30
TERA = 1e12
NODE = 8  # GPUs of one machine


@dataclass(frozen=True)
class GPU:
    name: str
    memory: float  # bytes
    flops: float  # dense bfloat16 operations a second, of the data sheet
    bandwidth: float  # bytes a second, of its memory
    link: float  # bytes a second that one GPU reaches with those of its node: NVLink, or PCIe


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
    """What a plan takes for granted; the fields are keys of the command line."""

    mfu: float = 0.25  # of the operations that are made, recomputation included: training and scoring
    moe: float = 0.5  # of `mfu`, where a token visits some of the experts alone
    rate: float | None = None  # tokens generated a second by one GPU; None: from memory bandwidth, as below
    mbu: float = 0.60  # share of the memory bandwidth that decoding reaches
    prefill: float = 0.40  # of the operations of reading prompts
    length: float = 0.30  # mean length of a completion, of its cap
    prompt: int = 256  # tokens of a prompt in the mean
    document: float = (
        0.50  # mean length of a demonstration or of a pair's reply, of the longest that is taken
    )
    rows: int = 50_000  # of a data set of which nothing else says how many it has
    rounds: float = 2.0  # rollouts that dynamic sampling draws for one that it keeps
    price: float | None = None  # of a GPU for an hour
    between_nodes: float = 40e9  # bytes a second and GPU


USABLE = 0.92  # of a GPU's memory; the rest is CUDA's own, NCCL's, and what the allocator cannot join


def change(assumed: Assumptions, given: Mapping[str, Any]) -> Assumptions:
    """`assumed` with the fields that `given` names. Raises UserError for what is no number above 0."""
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise UserError(f"{name}: expected a number above 0, got {value}")
        if name in ("mfu", "moe", "mbu", "prefill", "length", "document") and value > 1:
            raise UserError(f"{name}: a share, expected at most 1, got {value}")
    return replace(assumed, **given)


def machine(text: str) -> tuple[int | None, GPU]:
    """(how many, which) of "8xH100", or of "H100", which says no number.

    Raises UserError, with the nearest name that is known.
    """
    found = re.fullmatch(r"(?:(\d+)x)?(.+)", str(text).strip(), re.IGNORECASE)
    number, name = (found[1], found[2]) if found else (None, str(text))
    by_case = {known.lower(): gpu for known, gpu in GPUS.items()}
    if name.lower() not in by_case or number == "0":
        raise UserError(f'gpus: no GPU "{text}", expected such as 8xH100{nearest(name, list(GPUS))}')
    return int(number) if number else None, by_case[name.lower()]


def named_in(text: str) -> GPU | None:
    """Return the first GPU that a recipe's line on its cost names; None if it names none."""
    found = re.search(rf"\b({'|'.join(sorted(map(re.escape, GPUS), key=len, reverse=True))})\b", text)
    return GPUS[found[1]] if found else None
