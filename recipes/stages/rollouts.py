"""The record of a training on rollouts, as stages grpo and ppo keep it beside their metrics.json."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipes.objectives.ratios import Ratios
from recipes.runtime import curves, files, gpus
from recipes.trainers.completions import CompletionsLog
from recipes.trainers.resume import last_checkpoint


def opened(workdir: Path) -> CompletionsLog | None:
    """The log of completions under `workdir`; empty unless there is a checkpoint to go on from.

    Of several processes of one stage the first alone has one, of the rollouts of all.
    """
    if not gpus.first():
        return None
    log = CompletionsLog(workdir / "completions.jsonl")
    if last_checkpoint(workdir) is None:
        log.cut(0)
    return log


def write(
    out: Path, history: Sequence[dict[str, Any]], ratios: Ratios, log: CompletionsLog | None
) -> tuple[list[curves.Row], dict[str, float]]:
    """curve.csv, timing.csv, ratios.csv and completions.jsonl beside `out`.

    Returns the rows of the curve that a repeated run has too, and their final numbers.
    """
    curve = curves.rows(history)
    measured = curves.deterministic(curve)
    files.write(out.with_name("curve.csv"), curves.text(measured))
    files.write(out.with_name("timing.csv"), curves.text(curves.timing(curve)))
    files.write(out.with_name("ratios.csv"), ratios.text())
    if log:
        log.flush()
        shutil.copyfile(log.path, out.with_name("completions.jsonl"))
    return measured, curves.scalars(measured)
