"""The key `global_batch` of a stage: with it a result does not depend on the number of GPUs."""

from collections.abc import Mapping
from typing import Any

from encore.errors import UserError
from encore.recipe.batch import of_process, training_nodes
from encore.recipe.checks import machines
from encore.runtime.gpus import SHARDED, SPREAD

# what follows from the batch and the number of GPUs -> what to say of it
FOLLOWS = {
    "gradient_accumulation_steps": "it follows from global_batch and the number of GPUs; remove it",
    "steps_per_generation": "it depends on the number of GPUs; write generation_batch_size, of all of them",
}


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError unless a resolved stage says what its batch is on any number of GPUs.

    It must divide among those that it asks for.
    """
    resources = stage.get("resources", {})
    gpus = resources.get("gpu", 0)
    nodes = _nodes(stage)
    how = resources.get("shard")
    if how and (stage["run"] not in SHARDED or gpus < 2):
        raise UserError(
            f"resources.shard: {how} is of stages {', '.join(SHARDED)} on several GPUs, "
            f"not of {stage['run']} on {gpus}"
        )
    if stage["run"] not in SPREAD:
        return
    if "global_batch" in stage:
        for name, why in FOLLOWS.items():
            if name in stage["args"]:
                raise UserError(f"args.{name}: {why}")
        of_process(stage, max(gpus, nodes))
    elif max(gpus, nodes) > 1:
        raise UserError(
            f"global_batch: missing; on {max(gpus, nodes)} GPUs the batch would follow their number"
        )


def _nodes(stage: Mapping[str, Any]) -> int:
    """How many machines train. Raises UserError where GPUs lie on the machines of a stage unequally, or where
    there can be no such machine."""
    resources = stage.get("resources", {})
    nodes, gpus, serving = resources.get("nodes", 1), resources.get("gpu", 0), stage.get("vllm_gpus", 0)
    if nodes == 1:
        machines.check_one(gpus, serving)
        return 1
    if stage["run"] not in SPREAD:
        raise UserError(
            f"resources.nodes: {nodes}; stage {stage['run']} is run on one, as all but {', '.join(SPREAD)}"
        )
    training = training_nodes(stage)
    if gpus % training:
        fits = gpus - gpus % training or training
        raise UserError(
            f"resources.gpu: {gpus} do not lie on {training} nodes, equally many on each; nearest: {fits}"
        )
    if serving not in (0, gpus // training):
        raise UserError(
            f"vllm_gpus: {serving}; on several nodes the server has the last one for itself, with as many "
            f"GPUs as the others: {gpus // training} (over several it would need Ray, which no stage starts)"
        )
    machines.check_one(gpus // training)
    return training
