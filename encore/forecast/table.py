"""A plan as text of at most 100 columns, and as JSON."""

import json
import textwrap
from dataclasses import fields
from typing import Any

from encore.forecast.hardware import GIB
from encore.forecast.memory import Memory, room
from encore.forecast.plan import Plan, Row

WIDTH = 100
NAME = 28
PARTS = {
    "weights": "weights",
    "gradients": "grads",
    "optimizer": "optim",
    "activations": "activ",
    "reference": "ref",
    "critic": "critic",
    "reward": "reward",
    "cache": "cache",
    "engine": "vLLM",
}
MEANING = {
    "mfu": "of peak, training",
    "moe": "of that for experts",
    "rate": "tokens/s a GPU",
    "mbu": "of memory bandwidth, decoding",
    "prefill": "of peak, reading prompts",
    "length": "mean completion, of the cap",
    "prompt": "tokens a prompt",
    "document": "mean demonstration, of max_length",
    "rows": "rows of a data set of unknown size",
    "rounds": "draws of dynamic sampling for one kept",
    "start": "seconds until vLLM samples",
    "price": "a GPU-hour",
    "between_nodes": "bytes/s a GPU, between nodes",
}


def _labels(plan: Plan) -> list[str]:
    """Return the name of each row.

    If several rows have the same name, the later ones also get the name of their first arm.
    """
    labels: list[str] = []
    for row in plan.rows:
        labels.append(f"{row.name}@{row.nodes[0].arm}" if row.name in labels else row.name)
    return [label if len(label) < NAME else f"{label[: NAME - 2]}…" for label in labels]


def text(plan: Plan) -> str:
    """Return the text of a plan."""
    lines = [_title(plan), "", *_costs(plan), ""]
    if any(row.estimate.job.gpus for row in plan.rows):
        lines += [*_memory(plan), ""]
    lines += [*_problems(plan), *_assumed(plan)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def data(plan: Plan) -> dict[str, Any]:
    """Return the content of plan.json."""
    return {
        "recipe": plan.recipe,
        "scale": plan.scale,
        "gpu": plan.gpu.name,
        "gpus": plan.gpus,
        "seeds": plan.seeds,
        "fits": plan.fits,
        "gpu_hours": plan.gpu_hours,
        "hours_one_after_another": plan.hours,
        "money": plan.money,
        "disk_bytes": plan.disk,
        "assumed": vars(plan.assumed),
        "jobs": [_row(row) for row in plan.rows],
    }


def _row(row: Row) -> dict[str, Any]:
    estimate = row.estimate
    return {
        "name": row.nodes[0].name,
        "kind": estimate.job.kind,
        "arms": sorted({node.arm for node in row.nodes}),
        "runs": len(row.nodes),
        "gpus": estimate.job.gpus,
        "vllm_gpus": estimate.job.server,
        "shard": estimate.job.shard,
        "tokens_generated": estimate.generated,
        "tokens_trained": estimate.trained,
        "flops": estimate.flops,
        "hours": estimate.hours,
        "gpu_hours": estimate.gpu_hours,
        "tokens_per_s_and_gpu": estimate.rate,
        "memory_bytes": {part.name: getattr(estimate.memory, part.name) for part in fields(Memory)},
        "activations_other_way_bytes": row.other,
        "memory_total_bytes": estimate.memory.total,
        "lacks": estimate.lacks,
        "warnings": estimate.warnings,
    }


def as_json(plan: Plan) -> str:
    return json.dumps(data(plan), indent=2) + "\n"


def _title(plan: Plan) -> str:
    gpu = plan.gpu
    count = f"{plan.gpus} " if plan.gpus else ""
    what = f"{count}{gpu.name} of {gpu.memory / GIB:.0f} GiB" if _on_gpus(plan) else "no GPU"
    seeds = f"{plan.seeds} seed{'s' if plan.seeds > 1 else ''}"
    verdict = "all of it fits" if plan.fits else "DOES NOT FIT as it stands"
    return f"{plan.recipe}, scale {plan.scale}, {seeds}, {what}: {verdict}"


def _on_gpus(plan: Plan) -> bool:
    return any(row.estimate.job.gpus for row in plan.rows)


def _costs(plan: Plan) -> list[str]:
    """Return the lines of work and time: one for each job, and one in total."""
    head = ("runs", "GPUs", "drawn", "trained", "EFLOP", "hours", "GPU-h")
    lines = ["work of each run".ljust(NAME) + "".join(f"{word:>9}" for word in head)]
    for label, row in zip(_labels(plan), plan.rows, strict=True):
        estimate, job = row.estimate, row.estimate.job
        if job.policy is None and not estimate.lacks:
            continue
        gpus = f"{job.gpus}+{job.server}" if job.server else str(job.gpus)
        cells = [str(len(row.nodes)), gpus, _short(estimate.generated), _short(estimate.trained)]
        cells += [_short(estimate.flops / 1e18), _short(estimate.hours), _short(estimate.gpu_hours)]
        lines.append(label.ljust(NAME) + "".join(f"{cell:>9}" for cell in cells))
    flops = sum(row.estimate.flops * len(row.nodes) for row in plan.rows)
    runs = sum(len(row.nodes) for row in plan.rows if row.estimate.job.policy)
    made = sum(row.estimate.generated * len(row.nodes) for row in plan.rows)
    learnt = sum(row.estimate.trained * len(row.nodes) for row in plan.rows)
    total = [str(runs), "", _short(made), _short(learnt), _short(flops / 1e18)]
    total += [_short(plan.hours), _short(plan.gpu_hours)]
    lines.append("all of them".ljust(NAME) + "".join(f"{cell:>9}" for cell in total))
    money = "" if plan.money is None else f", money {plan.money:,.0f} at {plan.assumed.price:g} a GPU-hour"
    lines.append(f"disk {plan.disk / 1e9:,.3g} GB at the fullest{money}; hours: one job after another")
    return lines


def _memory(plan: Plan) -> list[str]:
    """Return the lines of memory: for each job, the GiB of its fullest GPU by part."""
    limit = room(plan.gpu) / GIB
    names = [*PARTS.values(), "total"]
    lines = [f"GiB a GPU ({limit:.0f} to give)".ljust(NAME) + "".join(f"{name:>7}" for name in names)]
    for label, row in zip(_labels(plan), plan.rows, strict=True):
        held = row.estimate.memory
        if not row.estimate.job.gpus or not held.total:
            continue
        sizes = [getattr(held, part) / GIB for part in PARTS] + [held.total / GIB]
        mark = "" if row.estimate.fits else " !"
        lines.append(label.ljust(NAME) + "".join(f"{_gib(size):>7}" for size in sizes) + mark)
    switched = []
    for label, row in zip(_labels(plan), plan.rows, strict=True):
        training = row.estimate.job.training
        if row.other and training:
            way = "without" if training.checkpointing else "with"
            switched.append(f"{label} {row.other / GIB:,.1f} {way}")
    if switched:
        lines += _wrapped("activations with and without checkpointing, the other way: ", "; ".join(switched))
    return lines


def _gib(size: float) -> str:
    return "" if not size else f"{size:,.1f}" if size < 100 else f"{size:,.0f}"


def _problems(plan: Plan) -> list[str]:
    lines: list[str] = []
    for label, row in zip(_labels(plan), plan.rows, strict=True):
        estimate = row.estimate
        if estimate.lacks:
            lines += _wrapped(f"{label} does not fit: ", "; ".join(estimate.lacks))
    notes: dict[str, list[str]] = {}
    for row in plan.rows:
        for warning in row.estimate.warnings:
            notes.setdefault(warning, []).append(row.name)
    for warning, names in notes.items():
        lines += _wrapped("note: ", f"{warning} ({', '.join(dict.fromkeys(names))})")
    return [*lines, ""] if lines else []


def _assumed(plan: Plan) -> list[str]:
    if not _on_gpus(plan):
        return _wrapped("assumed: ", "20 billion operations a second of a job without a GPU")
    settings = vars(plan.assumed)
    said = [f"{key}={settings[key]:g} ({MEANING[key]})" for key in MEANING if settings[key] is not None]
    if plan.assumed.rate is None:
        rates = {
            f"{label} {row.estimate.rate:,.0f}": None
            for label, row in zip(_labels(plan), plan.rows, strict=True)
            if row.estimate.rate and row.estimate.job.training
        }
        said += [f"rate of generation in tokens/s a GPU: {', '.join(rates)}"] if rates else []
    return _wrapped("assumed, each can be changed (mfu=0.4): ", "; ".join(said))


def _wrapped(first: str, words: str) -> list[str]:
    return textwrap.wrap(first + words, WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def _short(value: float) -> str:
    """Return a number in at most seven characters."""
    if not value:
        return "-"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if letter == 'k' else size):.3g}{letter}"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
