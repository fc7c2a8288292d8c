"""Phrases for the model that a run trains and for its task, for the head of a report."""

import pandas as pd

from analysis.numbers import tasks
from analysis.numbers.run import Run
from encore.recipe.machine import GgufModel, WheelModel
from encore.recipe.task import DataSet, EnvironmentTask, GymTask, Task, WorldTask

UNKNOWN = "A model of unknown size"
# world -> a phrase for its problems, and the key of the world that sets their size
WORLDS = {
    "chain": ("sums", "terms"),
    "bilingual": ("sums in two languages", "terms"),
    "countdown": ("countdown puzzles", "numbers"),
    "faces": ("sums with J, Q and K", "terms"),
    "sort": ("sorting", "numbers"),
    "preferences": ("requests for sums", "terms"),
}


def model(run: Run, numbers: pd.DataFrame) -> str:
    """Return a phrase for the model that the first arm trains, and where the model comes from.

    Examples: `0.13M-parameter model trained here from scratch`, `Qwen/Qwen2.5-32B`, `m.gguf of
    a-package==1.0, dequantized`.
    """
    seed = run.seeds[0]
    stages = run.stages(run.arms[0], seed)
    for stage in reversed(stages):
        if taken := run.graph.model_of(stage):
            return f"{taken.name}{', dequantized' if isinstance(taken, GgufModel | WheelModel) else ''}"
    trained = parameters(run, numbers)
    return f"{size(trained)}-parameter model trained here from scratch" if trained else UNKNOWN


def parameters(run: Run, numbers: pd.DataFrame) -> int | None:
    """Return the number of parameters that the first arm's last stage trains; None if it has not run."""
    stages = run.stages(run.arms[0], run.seeds[0])
    if not stages:
        return None
    last = run.label(stages[-1])
    rows = (numbers.arm == run.arms[0]) & (numbers.node == last) & (numbers.metric == "parameters")
    return int(numbers.value[rows].iloc[0]) if rows.any() else None


def size(parameters: float) -> str:
    """Return a number of parameters as `0.13M`, `34M`, `1.5B`."""
    unit, letter = (1e9, "B") if parameters >= 1e9 else (1e6, "M")
    return f"{parameters / unit:.2g}{letter}"


def task(run: Run) -> str:
    """Return a phrase for the headline task, such as `sums of 3 to 8 terms` or `HuggingFaceH4/MATH-500`.

    The result is "" if the run evaluates nothing.
    """
    name = tasks.headline(run)
    if not name:
        return ""
    spec = tasks.tasks(run, run.arms[0], run.ends[-1])[name]
    return (problems(spec.task) if spec.task else "") or spec.lm_eval or name


def problems(asked: Task) -> str:
    """Return a phrase for the problems of a `task` of a recipe; empty if its keys do not name any."""
    if not isinstance(asked, WorldTask):
        return (asked.hub or asked.file or "") if isinstance(asked, DataSet) else ""
    if isinstance(asked, GymTask):
        return f"{asked.reasoning_gym} of reasoning-gym"
    if isinstance(asked, EnvironmentTask):
        return f"episodes of {asked.environment}"
    what, dial = WORLDS.get(asked.world, (f"world {asked.world}", ""))
    sizes = (asked.model_extra or {}).get(dial)
    if not sizes:
        return what
    fewest, most = sizes[0], sizes[-1]
    return f"{what} of {fewest if fewest == most else f'{fewest} to {most}'} {dial}"
