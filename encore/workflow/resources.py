"""The resources that a job asks for: GPUs, nodes, memory and time."""

from collections.abc import Callable
from typing import Any

from encore.recipe.graph import Graph, Node

MINUTES = 120  # minutes of a job, unless the recipe sets them
LONGEST = 2880  # largest number of minutes of a job: few partitions grant more than two days
MEMORY = 4000  # MB of a machine's memory for a job, unless the recipe sets them
MEMORY_OF_A_GPU = 64_000  # further MB of a machine's memory for each GPU

# returns a resource from a job's wildcards and, for some resources, the number of the attempt
Ask = Callable[..., int | str | None]


def of_job(graph: Graph, node: Callable[[Any], Node]) -> dict[str, Ask]:
    """Return resource -> function for the resources of a job; `node` returns the node of its wildcards.

    `gpu` counts all GPUs, and `vllm_gpu` the GPUs among them that a vLLM server gets. A job that is tried
    again gets more memory and time, because it may have failed for lack of them.
    """
    return {
        "gpu": lambda w: graph.machine(node(w)).gpus,
        "vllm_gpu": lambda w: graph.machine(node(w)).serving,
        "mem_mb": lambda w, attempt=1: memory(graph, node(w)) * (attempt + 1) // 2,
        "runtime": lambda w, attempt=1: min(_minutes(graph, node(w)) * attempt, LONGEST),
        "shard": lambda w: graph.machine(node(w)).shard,
        **_on_nodes(lambda w: graph.machine(node(w)).nodes),
    }


def of_all(graph: Graph, nodes: Callable[[], list[Node]]) -> dict[str, Ask]:
    """Return resource -> function for the most GPUs, memory and machines that one of the nodes asks for."""
    return {
        "gpu": lambda w: max(graph.machine(node).gpus for node in nodes()),
        "mem_mb": lambda w: max(memory(graph, node) for node in nodes()),
        **_on_nodes(lambda w: max(graph.machine(node).nodes for node in nodes())),
    }


def memory(graph: Graph, node: Node) -> int:
    """Return the MB of a machine's memory for a node; weights are loaded there before they go to a GPU."""
    machine = graph.machine(node)
    gpus = machine.gpus // machine.nodes
    return graph.resources(node).mem_mb or MEMORY + gpus * MEMORY_OF_A_GPU


def _minutes(graph: Graph, node: Node) -> int:
    """Return the minutes of a job, at most LONGEST; a stage that takes longer goes on in a further job."""
    return min(graph.resources(node).runtime or MINUTES, LONGEST)


def _on_nodes(machines: Callable[[Any], int]) -> dict[str, Ask]:
    """Return resource -> function for the machines of a job, and for options of the Slurm executor.

    The options are set only for a job on several machines, else None. With `mpi` the executor starts a job
    without its own srun; otherwise it would ask for `tasks` on each GPU.
    """

    def of_several(value: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda w: value(w) if machines(w) > 1 else None

    return {
        "nodes": machines,
        "mpi": of_several(lambda w: "srun"),
        "tasks": of_several(machines),
        "tasks_per_gpu": of_several(lambda w: 0),
    }
