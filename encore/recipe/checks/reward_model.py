"""Keys of a `reward_model` stage that contradict each other; checked before any job starts."""

from collections.abc import Mapping
from typing import Any

from encore.errors import UserError
from encore.recipe import products
from encore.recipe.checks import demonstrations
from encore.recipe.data_sets import is_data_set
from encore.recipe.graph import Graph, Node

LABELLED = ("samples", "step labels")  # by a world or beforehand
OF_COMPARISONS = ("demonstrations", "lora", "members", "normalize")


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError at the first mistake in a resolved `reward_model` stage that no schema shows."""
    if ("labels" in stage) == ("comparisons" in stage):
        raise UserError("labels, comparisons: expected one of the two")
    if "labels" in stage:
        given = [key for key in OF_COMPARISONS if key in stage or key in stage.get("needs", {})]
        if given:
            raise UserError(f"{given[0]}: a reward model with labels has none; remove it")
    if "demonstrations" in stage:
        if "demonstrations" in stage.get("needs", {}):
            raise UserError("demonstrations: needs.demonstrations has them; remove one of the two")
        demonstrations.check_source(stage["demonstrations"], "demonstrations")


def check_data(graph: Graph, node: Node) -> None:
    """Raise UserError unless a stage `reward_model` learns from what its keys are of.

    `labels` take step labels or samples, those of steps a world's alone; `comparisons` preferences.
    """
    stage = graph.stage(node)
    if stage["run"] != "reward_model" or "data" not in stage.get("needs", {}):
        return
    source = graph.needs(node)["data"]
    given = graph.stage(source)
    key, wanted = ("labels", LABELLED) if "labels" in stage else ("comparisons", ("preferences",))
    if (made := products.made(given)) not in wanted:
        raise UserError(
            f"needs.data: {key} takes {' or '.join(wanted)}, and stage {source.name} makes {made}"
        )
    if made == "samples" and is_data_set(given["task"]):
        if stage["labels"] == "steps":
            raise UserError(
                f"labels: a world's verifier labels steps, and stage {source.name} is of a data set; label "
                "its steps by a stage label_steps"
            )
        if "verifier" not in given["task"]:
            raise UserError(f"labels: stage {source.name} has no task.verifier, which labels answers")


def check_scored(graph: Graph, node: Node) -> None:
    """Raise UserError unless the reward model of a stage with `aggregation` has learnt what that reads."""
    aggregation = graph.stage(node).get("aggregation")
    if aggregation is None:
        return
    source = graph.needs(node)["reward_model"]
    labels = graph.stage(source).get("labels")
    if labels is None or (labels == "outcome" and aggregation != "last"):
        wanted = "labels" if aggregation == "last" else "labels: steps"
        raise UserError(
            f"aggregation: {aggregation} needs a reward model with {wanted}, which stage {source.name} lacks"
        )
