"""How long prompts and completions are, of worlds and of data sets, and the engine that draws them."""

from collections.abc import Mapping
from typing import Any

from recipes.planning.hardware import Assumptions
from recipes.planning.job import Generation

# of a world, as in the records of scale cpu: tokens of a prompt; mean length of an answer, of its cap, and of
# a reply in free form, whose cap is wider; tokens of a prompt with its answer
PROMPT, LENGTH, REPLY, DOCUMENT = 15, 0.65, 0.35, 40
FREE = ("preferences",)  # worlds of replies in free form
LONGEST = 512  # tokens of a prompt, where no stage says how long the longest may be
SERVED = 0.9  # and of a GPU that an engine has for itself
DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2, "auto": 2}


def drawn(config: Mapping[str, Any], completions: float, cap: int, assumed: Assumptions) -> Generation:
    """Completions drawn all at once, by the engine of an evaluation or of a stage that keeps them."""
    world, engine = of_world(config), config.get("backend_args", {})
    backend = "vllm" if config.get("backend") == "vllm" else "hf"
    domains = [*config.get("domains", {}).values()]
    longest = [one["longest_prompt"] for one in (config, *domains) if "longest_prompt" in one]
    return Generation(
        completions=completions,
        rollout=completions,
        cap=cap,
        mean=cap * (_length(config) if world else assumed.length),
        prompt=PROMPT if world else min(assumed.prompt, *longest, assumed.prompt),
        engine=backend,
        width=engine.get("tensor_parallel_size", 1),
        share=engine.get("gpu_memory_utilization", SERVED),
        bytes_a_weight=DTYPES.get(config.get("dtype", "float32"), 4),
        longest_prompt=64 if world else max(longest, default=LONGEST),
    )


def of_world(config: Mapping[str, Any]) -> bool:
    """Whether the texts are those of a world, whose alphabet is its characters."""
    tasks = [config.get("task"), *(one.get("task") for one in config.get("domains", {}).values())]
    return any("world" in task for task in tasks if task) or not any(tasks)


def _length(config: Mapping[str, Any]) -> float:
    """Mean length of the texts of a world, of their cap."""
    return REPLY if (config.get("task") or {}).get("world") in FREE else LENGTH
