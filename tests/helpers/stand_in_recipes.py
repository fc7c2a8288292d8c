"""A recipe whose sizes are tiny, to be run against the Hub of stocked_hub.

Kept is what decides whether the parts fit together: what it names of the Hub, with revisions, subsets,
splits and columns, templates, chat, rewards, losses, precision, who needs what, and the tasks of evaluations.
Not kept are GPUs, vLLM, lm-eval's own tasks, and SLICES.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from stocked_hub import ROWS

from encore.recipe import likeness
from encore.recipe.graph import Graph
from encore.recipe.layers import Layers
from encore.recipe.recipe import Recipe

SIZES = {
    "max_steps": 2,
    "epochs": 2,
    "every": 2,
    "inner_steps": 2,
    "prompts_per_epoch": 2,
    "num_generations": 2,
    "pass_k": 1,
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 2,
    "steps_per_generation": 4,
    "generation_batch_size": 8,
    "global_batch": 4,
    "max_completion_length": 8,
    "max_gen_toks": 8,
    "soft_overlong_cache": 2,
    "warmup_steps": 1,
    "save_steps": 2,
    "logging_steps": 1,
    "problems": ROWS // 3,
    "skip": 0,
    "documents": ROWS,
    "batch_size": 2,
    "items": 2,
    "samples": 2,
    "k": [1],
    "gpu": 0,
    "hidden_size": 32,
    "layers": 1,
    "head_dim": 32,
}
MACHINE = ("--gpus", "0", "--vllm-gpus", "0", "--nodes", "1", "--shard", "none")  # of a stage
SERVING = ("use_vllm", "backend_args")  # and whatever begins with vllm_, but what the loss is made of
# of Countdown: for each of 328,704 rows an expression would be sought
SLICES = {"train[:327680]": "train[:16]", "train[327680:328704]": "train[16:24]"}
KEPT = "vllm_importance_sampling_correction"


def half_are_right() -> None:
    """As a tiny random model gets nothing right, and dynamic sampling then stops."""
    from encore.learning import mixed_groups

    mixed_groups.correct = lambda row: len(row["completion"]) % 2 == 1


def graph(recipes: Iterable[Recipe]) -> Graph:
    """The recipes, with small sizes."""
    return Graph(
        {one.name: Recipe(one.name, Layers(_small(one.layers.content, greedy=False))) for one in recipes}
    )


def only(recipe: Recipe, scale: str) -> Recipe:
    """The recipe without the layers of other scales."""
    content = recipe.layers.content
    names = likeness.chain(likeness.of_content(content), scale)
    layers = {name: content["scales"][name] for name in reversed(names)}
    return Recipe(recipe.name, Layers({**content, "scales": layers}))


def _small(value: Any, greedy: bool, within: str = "") -> Any:
    """A layer, the value of key `within`, with small sizes; `greedy`: in a task that draws one sample."""
    if isinstance(value, list):
        return [_small(one, greedy) for one in value]
    if not isinstance(value, Mapping):
        return value
    greedy = greedy or value.get("temperature") == 0.0 or value.get("protocol") == "dr_grpo"
    found = {}
    for key, below in value.items():
        if key in SERVING or (key.startswith("vllm_") and key != KEPT):
            continue
        if isinstance(below, Mapping) and "lm_eval" in below:
            continue
        if key in ("cost", "without"):  # their keys are scales
            found[key] = below
            continue
        if key == "caps" and below:
            below = {"0": SIZES["max_completion_length"]}
        if (key, below) == ("backend", "vllm"):
            below = "hf"
        if key in SIZES and below is not None and not isinstance(below, Mapping):
            found[key] = 1 if greedy and key == "samples" else SIZES[key]
        else:
            found[key] = _small(below, greedy, key)
    if within == "reward_model" and "problems" in found:  # of those that are not held out
        found["problems"] = SIZES["problems"] // 2
    if "documents" in found and "hub" in found:
        found["max_length"] = 32
    if found.get("split") in SLICES:
        found["split"] = SLICES[found["split"]]
    if "protocol" in value:
        found |= {"max_gen_toks": SIZES["max_gen_toks"], "samples": 1 if greedy else SIZES["samples"]}
    return found
