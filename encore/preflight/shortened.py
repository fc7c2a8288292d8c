"""A stage cut to two optimizer steps, an evaluation cut to a few items, and how much longer the whole takes.

Two steps, because an optimizer has its state from the second one on, and the first one of a process is slow.
Nothing else that a recipe says of a stage is changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from encore.recipe import batch
from encore.recipe.kinds import args_of
from encore.runtime.gpus import SPREAD

STEPS = 2
DRAWS = ("sample", "rejection_sampling")  # stages whose time goes with the number of their problems
LEAST_ROWS = 64  # of data that a later stage learns from: some are held out, of others no pair is left
SPARE = 1.5  # data for so many steps
COMPLETIONS = 256  # that an evaluation draws of a task at most


@dataclass(frozen=True)
class Shortened:
    config: dict[str, Any]
    share: float  # of the work that is left, where it is known beforehand; else 1
    unknown: tuple[str, ...] = ()  # what the share leaves out, because its size is not known


def of_stage(config: Mapping[str, Any], rows: int, problems: int, from_cut: bool) -> Shortened:
    """The stage with two steps, or where it draws completions, with `rows` of its `problems`.

    `from_cut`: its data come from a stage that was cut, so that there are fewer than `problems` asks for.
    """
    kind, short = config["run"], {key: value for key, value in config.items() if key != "evaluate_every"}
    if kind in SPREAD:
        short["args"] = {**config["args"], "max_steps": STEPS, "logging_steps": 1}
    elif kind == "policy_gradient":
        short["args"] = {**config["args"], "epochs": STEPS}
    elif kind in DRAWS and problems > rows:
        short["problems"] = rows
        return Shortened(short, rows / problems)
    if from_cut:
        short.pop("problems", None)
    return Shortened(short, 1.0)


def rows_needed(stages: Sequence[Mapping[str, Any]], processes: int) -> int:
    """How many rows of data the stages that learn from rows need for a step, at the least."""
    steps = [batch_size(stage, processes) for stage in stages if stage["run"] in SPREAD]
    return max([LEAST_ROWS, *(ceil(SPARE * size) for size in steps)])


def batch_size(stage: Mapping[str, Any], processes: int) -> int:
    """Examples of an optimizer step."""
    args = stage["args"]
    own = args.get("per_device_train_batch_size", batch.DEFAULT) * args.get("gradient_accumulation_steps", 1)
    return stage.get("global_batch") or own * processes


def steps(config: Mapping[str, Any], epochs: float) -> int:
    """Optimizer steps of the whole stage; `epochs`: how many, or what part of one, two steps were.

    Of an ensemble those of all members.
    """
    args = config["args"]
    if config["run"] == "policy_gradient":
        return args["epochs"] * args["inner_steps"]
    total = args.get("max_steps", -1)
    if total <= 0:
        total = ceil(round(default(config, "num_train_epochs") / (epochs / STEPS), 3)) if epochs else STEPS
    return total * config.get("members", 1)


def seconds_a_step(config: Mapping[str, Any], first: float, later: float) -> float:
    """Seconds of a step on average, from those of the first one and of a later one.

    Where a rollout is used for several steps, only the first of them pays for it.
    """
    uses = 1.0
    if config["run"] in ("grpo", "ppo"):
        lengths = batch.rollout(config) or (1, 1)
        uses = max(1.0, lengths[0] * config["args"].get("num_iterations", 1) / lengths[1])
    return later if uses < STEPS else (first + (uses - 1) * later) / uses


def default(config: Mapping[str, Any], name: str) -> Any:
    """A field of a stage's `args`, or else its default; None where it has none."""
    if name in config["args"]:
        return config["args"][name]
    arguments = args_of(config["run"])
    field = arguments.model_fields.get(name) if arguments else None
    return field.default if field and not field.is_required() else None


def of_evaluation(config: Mapping[str, Any]) -> Shortened:
    """The evaluation with so few items that none of its tasks draws more than COMPLETIONS."""
    tasks, whole, left, unknown = {}, 0.0, 0.0, []
    for name, task in config["tasks"].items():
        samples = task.get("samples") or 1
        few = max(1, COMPLETIONS // samples)
        items = task.get("items")
        tasks[name] = {**task, "items": min(items or few, few)}
        if items is None:
            unknown.append(name)
            continue
        tokens = samples * (task.get("max_gen_toks") or 1)
        whole, left = whole + items * tokens, left + tasks[name]["items"] * tokens
    return Shortened({**config, "tasks": tasks}, left / whole if whole else 1.0, tuple(unknown))


def barely(config: Mapping[str, Any]) -> dict[str, Any]:
    """The evaluation, or the stage that draws completions, with a token of each of one item: what it takes
    to load."""
    if "tasks" not in config:
        return {**config, "problems": 1, "args": {**config["args"], "max_completion_length": 1}}
    one = {name: {**task, "items": 1} for name, task in config["tasks"].items()}
    cut = {
        name: {**task, "max_gen_toks": 1} if "max_gen_toks" in task else task for name, task in one.items()
    }
    return {**config, "tasks": cut}


def whole_s(loading: float, cut: float, share: float) -> float:
    """Seconds of the whole, from those of loading alone, and of loading and a share of the work."""
    return loading + max(cut - loading, 0.0) / share
