"""A recipe whose models and data sets are tiny ones of the same kind, on disk, and whose sizes are tiny too.

Kept is what decides whether the parts fit together: architectures, classes of tokenizers, templates, chat,
columns, rewards, losses, precision, who needs what, and the tasks of evaluations. Not kept are GPUs, vLLM and
lm-eval's own tasks, which come from the Hub.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import code_datasets
import hub_datasets
import reasoning_datasets
import true_tokenizers
from data_set_files import Shape, write

from encore.recipe.graph import Graph
from encore.recipe.layers import Layers
from encore.recipe.recipe import Recipe

DATA = {**hub_datasets.DATASETS, **reasoning_datasets.DATASETS, **code_datasets.DATASETS}
ROWS = 24  # of each split
SIZES = {
    "max_steps": 2,
    "epochs": 2,
    "every": 2,
    "inner_steps": 2,
    "prompts_per_epoch": 2,
    "num_generations": 2,
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
SERVING = ("use_vllm", "backend_args")  # and whatever begins with vllm_, but what the loss is made of
KEPT = "vllm_importance_sampling_correction"


def half_are_right() -> None:
    """As a tiny random model gets nothing right, and dynamic sampling then stops."""
    from encore.learning import mixed_groups

    mixed_groups.correct = lambda row: len(row["completion"]) % 2 == 1


def kind(hub: str) -> str:
    """Which of `true_tokenizers` has the architecture and the tokenizer of a model of the Hub."""
    if "pythia" in hub:
        return "gpt-neox"
    if "R1-Distill" in hub:
        return "qwen2-thinking"
    return "qwen2" if "Instruct" in hub else "qwen2-base"


def graph(recipes: Iterable[Recipe], folder: Path) -> Graph:
    """The recipes, to be run in `folder`, where the models and data sets that they name are written."""
    return Graph(
        {
            one.name: Recipe(one.name, Layers(_small(one.layers.content, folder, greedy=False)))
            for one in recipes
        }
    )


def only(recipe: Recipe, scale: str) -> Recipe:
    """The recipe without the layers of other scales."""
    own = recipe.layers.content["scales"][scale]
    layers = {name: recipe.layers.content["scales"][name] for name in (own.get("like", scale), scale)}
    return Recipe(recipe.name, Layers({**recipe.layers.content, "scales": layers}))


def _small(value: Any, folder: Path, greedy: bool, within: str = "") -> Any:
    """A layer, the value of key `within`, with small sizes; `greedy`: in a task that draws one sample."""
    if isinstance(value, list):
        return [_small(one, folder, greedy) for one in value]
    if not isinstance(value, Mapping):
        return value
    if "hub" in value:
        return _stood_in(value, folder)
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
            found[key] = _small(below, folder, greedy, key)
    if within == "reward_model" and "problems" in found:  # of those that are not held out
        found["problems"] = SIZES["problems"] // 2
    if "protocol" in value:
        found |= {"max_gen_toks": SIZES["max_gen_toks"], "samples": 1 if greedy else SIZES["samples"]}
    return found


def _stood_in(named: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A model, or the task of a data set, whose name is that of a folder."""
    place = named["hub"].replace("/", "--")
    if set(named) == {"hub", "revision"}:
        if not (folder / place).exists():
            true_tokenizers.checkpoint(kind(named["hub"]), folder / place)
        return {"path": f"{place}/final"}
    if not (folder / place).exists():
        write(named["hub"], _longer(DATA[named["hub"]]), folder)
    kept = {key: value for key, value in named.items() if key not in ("subset", "revision")}
    sizes = {key: SIZES[key] for key in ("documents",) if key in kept} | (
        {"max_length": 32} if "documents" in kept else {}
    )
    split = named["split"].partition("[")[0]
    return {**kept, **sizes, "hub": place, "revision": "0" * 40, "split": split, **_subset(named)}


def _subset(named: Mapping[str, Any]) -> dict[str, Any]:
    return {"subset": named["subset"]} if "subset" in named else {}


def _longer(shape: Shape) -> Shape:
    """As many rows as a batch takes, no two alike."""
    rows = [_changed(shape.rows[i % len(shape.rows)], i) for i in range(ROWS)]
    return Shape(shape.revision, shape.columns, rows, shape.splits, shape.subsets, shape.files)


def _changed(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The row with a number before each of its prompts' texts, so that none is another's."""
    marked = json.loads(json.dumps(row))
    for key in ("prompt", "problem", "question", "text"):
        if isinstance(marked.get(key), str):
            marked[key] = f"{number}: {marked[key]}"
    for key in ("chosen", "rejected"):
        if isinstance(marked.get(key), str):
            marked[key] = marked[key].replace("Human:", f"Human: {number}", 1)
    return marked
