"""The findings of a preflight: checks, hours and disk; as a table, as JSON, and whether the run may start."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tabulate import tabulate

from encore.runtime import health

WIDTH = 100
OK, WARN, FAIL = "ok", "warn", "FAIL"
# checks of a stage's training; after two steps they say nothing
OF_TRAINING = {"loss", "zero_variance", "underfull", "entropy", "accuracy", "reward", "rewards", "chance"}
OF_TRAINING |= {"explained_variance", "chosen_logp", "covered", "distinct", "held_out", "ties"}
# checks that say little of a policy after two steps
OF_POLICY = ("truncation", "skipped", "pairs")
# check -> what helps if it fails
HELP = {
    "known_tokens": "write the template in tokens of the model, or by `chat`",
    "same_template": "use the template that the policy was trained with",
    "truncation": "raise max_completion_length, or look whether `ends` is what the policy ends replies with",
    "ratio_at_start": "training computes other log-probabilities than the rollout had: no cache or precision "
    "may differ between the two",
    "gold_of_next": "the verifier pays for wrong answers: look at task.answer and task.verifier",
    "long": "raise args.max_length",
}


@dataclass(frozen=True)
class Finding:
    stage: str
    check: str
    status: str  # OK, WARN or FAIL
    message: str


@dataclass
class Cost:
    """The cost of a stage or an evaluation in a run; times are of one seed."""

    stage: str
    runs: int  # number of seeds for which the stage runs
    gpus: int = 0
    steps: int = 0
    step_s: float = 0.0
    hours: float = 0.0
    hours_at_most: float | None = None  # the hours if all rows were as long as the longest
    product_mib: float = 0.0
    state_mib: float = 0.0  # size of a checkpoint to resume from


def of_health(stage: str, check: health.Check, stand_in: bool) -> Finding | None:
    """Return a check of a stage as a finding; None if two steps say nothing about it."""
    name = check["check"].partition("/")[0]
    if name in OF_TRAINING:
        return None
    if check["ok"]:
        return Finding(stage, check["check"], OK, check["message"].partition(": does it")[0])  # no question
    message = check["message"] + (f"; {HELP[name]}" if name in HELP else "")
    if stand_in and name in OF_POLICY:
        message = f"{check['message']}, of a policy that stands in for the trained one"
    return Finding(stage, check["check"], FAIL if check["severity"] == "error" else WARN, message)


def of_disk(costs: Iterable[Cost], free_mib: float) -> Finding:
    """Return a finding on whether the disk has room for all products and the largest checkpoint twice.

    Twice, because the old checkpoint is kept while the new one is written.
    """
    needed = disk_mib(costs)
    message = f"{_size(needed)} for what the run keeps and its largest checkpoint, {_size(free_mib)} are free"
    if needed <= free_mib:
        return Finding("the run", "disk", OK, message)
    return Finding("the run", "disk", FAIL, f"{message}; make room, or link checkpoints/ to another disk")


def disk_mib(costs: Iterable[Cost]) -> float:
    """Return the MiB that all seeds take on disk.

    Recorded completions are not counted; a stage keeps little more than 256 MiB of them.
    """
    costs = list(costs)
    kept = sum(cost.runs * cost.product_mib for cost in costs)
    return kept + 2 * max((cost.state_mib for cost in costs), default=0.0)


def hours(costs: Iterable[Cost]) -> dict[str, float]:
    """Return the hours of all seeds, one job after another, and their GPU-hours.

    Each has an upper limit, `…_at_most`: its value if all rows were as long as the longest.
    """
    costs = list(costs)
    most = [max(cost.hours, cost.hours_at_most or 0.0) for cost in costs]
    return {
        "hours": sum(cost.runs * cost.hours for cost in costs),
        "hours_at_most": sum(cost.runs * high for cost, high in zip(costs, most, strict=True)),
        "gpu_hours": sum(cost.runs * cost.hours * cost.gpus for cost in costs),
        "gpu_hours_at_most": sum(
            cost.runs * high * cost.gpus for cost, high in zip(costs, most, strict=True)
        ),
    }


def failed(findings: Iterable[Finding]) -> bool:
    return any(finding.status == FAIL for finding in findings)


def record(about: Mapping[str, Any], findings: Sequence[Finding], costs: Sequence[Cost]) -> dict[str, Any]:
    """Return the content of preflight.json."""
    return {
        **about,
        "ok": not failed(findings),
        "checks": [vars(item) for item in findings],
        "costs": [vars(item) for item in costs],
        "total": {**hours(costs), "disk_mib": disk_mib(costs)},
    }


def text(findings: Sequence[Finding], costs: Sequence[Cost]) -> str:
    """Return the findings and the table of costs as text, at most WIDTH columns wide."""
    wide = [max(len(cell) for cell in column) for column in zip(*_cells(findings), strict=True)]
    lines = []
    for (stage, check, status), finding in zip(_cells(findings)[1:], findings, strict=True):
        start = f"{stage:{wide[0]}}  {check:{wide[1]}}  {status:{wide[2]}}  "
        lines += textwrap.wrap(
            " ".join(finding.message.split()),
            WIDTH,
            initial_indent=start,
            subsequent_indent=" " * len(start),
            break_on_hyphens=False,
        )
    return "\n".join([*lines, "", *_cost_lines(costs)])


def _cells(findings: Sequence[Finding]) -> list[tuple[str, str, str]]:
    rows = [(_cut(finding.stage), _cut(finding.check), finding.status) for finding in findings]
    return [("", "", ""), *rows]


def _cut(word: str, most: int = 26) -> str:
    return word if len(word) <= most else word[: most - 1] + "…"


def _cost_lines(costs: Sequence[Cost]) -> list[str]:
    head = ("stage", "seeds", "steps", "s/step", "h/seed", "at most", "GPUs", "product", "state")
    rows = [
        (
            _cut(cost.stage),
            str(cost.runs),
            f"{cost.steps:,}" if cost.steps else "",
            f"{cost.step_s:.3g}" if cost.steps else "",
            _hours(cost.hours),
            "" if cost.hours_at_most is None else _hours(max(cost.hours_at_most, cost.hours)),
            str(cost.gpus),
            _size(cost.product_mib) if cost.product_mib else "",
            _size(cost.state_mib) if cost.state_mib else "",
        )
        for cost in costs
    ]
    align = ["left", *["right"] * (len(head) - 1)]
    table = tabulate([head, *rows], tablefmt="plain", disable_numparse=True, colalign=align)
    total = hours(costs)
    say = f"The run takes about {_hours(total['hours'])} hours, one job after another"
    if total["gpu_hours"]:
        say += f" ({_hours(total['gpu_hours'])} GPU-hours)"
    if total["hours_at_most"] > total["hours"]:
        say += f"; {_hours(total['hours_at_most'])} if all rows were as long as the longest"
    say += f"; and {_size(disk_mib(costs))} of disk."
    return [line.rstrip() for line in table.splitlines()] + ["", *textwrap.wrap(say, WIDTH)]


def _hours(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def _size(mib: float) -> str:
    for unit in ("MiB", "GiB"):
        if mib < 1024:
            return f"{mib:.1f} {unit}"
        mib /= 1024
    return f"{mib:,.1f} TiB"
