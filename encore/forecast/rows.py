"""How many rows a stage has to learn from, or to answer, where its recipe does not say."""

from collections.abc import Mapping
from typing import Any

from encore.forecast.hardware import Assumptions
from encore.recipe.graph import Graph, Node

# Of a data set, its subset and split, by its own page.
ROWS = {
    ("Anthropic/hh-rlhf", "", "train"): 160_800,
    ("DigitalLearningGmbH/MATH-lighteval", "default", "train"): 7_500,
    ("HuggingFaceH4/MATH-500", "", "test"): 500,
    ("HuggingFaceH4/aime_2024", "", "train"): 30,
    ("HuggingFaceH4/no_robots", "", "train"): 9_500,
    ("HuggingFaceH4/ultrafeedback_binarized", "", "train_gen"): 61_135,
    ("HuggingFaceH4/ultrafeedback_binarized", "", "train_prefs"): 61_135,
    ("HuggingFaceH4/ultrafeedback_binarized", "", "train_sft"): 61_135,
    ("HuggingFaceH4/ultrafeedback_binarized", "", "test_prefs"): 2_000,
    ("Jiayi-Pan/Countdown-Tasks-3to4", "", "train[:327680]"): 327_680,
    ("NeelNanda/pile-10k", "", "train"): 10_000,
    ("berkeley-nest/Nectar", "", "train"): 182_954,
    ("knoveleng/open-rs", "", "train"): 7_000,
    ("open-r1/DAPO-Math-17k-Processed", "en", "train"): 14_116,
    ("open-r1/Mixture-of-Thoughts", "all", "train"): 349_317,
    ("open-r1/Mixture-of-Thoughts", "math", "train"): 93_733,
    ("openai/gsm8k", "main", "train"): 7_473,
    ("trl-internal-testing/tldr-preference-sft-trl-style", "", "train"): 116_722,
    ("trl-internal-testing/tldr-preference-trl-style", "", "train"): 92_858,
}
DOCUMENTS = 4_096  # of a world that is not told how many
KEPT = 0.5  # of the completions of rejection sampling, that are right
RANKED = {"berkeley-nest/Nectar": 7}  # replies of a row; otherwise two


def rows(graph: Graph, node: Node, assumed: Assumptions) -> tuple[float, tuple[str, ...]]:
    """Return the rows that a stage is given (prompts, pairs, rankings …), and what had to be assumed."""
    config, inputs = graph.config(node), graph.inputs(node)
    found, unknown = 0.0, []
    if "data" in inputs:
        found = made(graph, inputs["data"], assumed)[0]
        if config["run"] != "label":
            found = min(found, config.get("problems", found))
    for source in [*_sources(config, "data" in inputs), *config.get("also", {}).values()]:
        if "share" in source and "rewards" not in source:
            found /= 1 - source["share"]
            continue
        count, missing = _of_source(source, assumed)
        found += count
        unknown += missing
    return found, tuple(unknown)


def made(graph: Graph, node: Node, assumed: Assumptions) -> tuple[float, int]:
    """Return the rows of the product of a stage that makes data, and the replies of each row."""
    config = graph.config(node)
    given, _ = rows(graph, node, assumed)
    if config["run"] in ("rejection_sampling", "sample"):
        replies = config["args"]["num_generations"]
        return (given * replies * KEPT, 1) if config["run"] == "rejection_sampling" else (given, replies)
    if config["run"] == "label_steps":
        upstream = graph.inputs(node).get("data")
        return given, made(graph, upstream, assumed)[1] if upstream else 1
    if config["run"] == "label":
        upstream = graph.inputs(node).get("data")
        replies = made(graph, upstream, assumed)[1] if upstream else ranked(config)
        kept = config.get("keep", "preferences")
        return given * (1 - config.get("validation", 0.1)) * (replies / 2 if kept == "right" else 1), replies
    return given, 1


def ranked(config: Mapping[str, Any]) -> int:
    """Return the replies of a row of a data set of preferences."""
    return RANKED.get(config.get("task", {}).get("hub", ""), 2)


def _sources(config: Mapping[str, Any], has_data: bool) -> list[Mapping[str, Any]]:
    if "domains" in config:
        return list(config["domains"].values())
    return [config] if "task" in config and not has_data else []


def _of_source(source: Mapping[str, Any], assumed: Assumptions) -> tuple[float, list[str]]:
    task = source["task"]
    if "world" in task:
        return source.get("problems", source.get("corpus", {}).get("documents", DOCUMENTS)), []
    name = task.get("hub", task.get("file", "?"))
    known = ROWS.get((name, task.get("subset", ""), task.get("split", "")))
    if known is None and "problems" not in source:
        return assumed.rows, [f"{assumed.rows:,} rows of {name} {task.get('split', '')}".strip()]
    return min(source.get("problems", known or assumed.rows), known or source.get("problems", 0)), []
