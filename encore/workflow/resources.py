"""The resources of a job, as its stage or evaluation asks for them: GPUs, nodes, memory, time."""

from collections.abc import Callable
from typing import Any

from encore.recipe.graph import Graph, Node

MINUTES = 120
LONGEST = 2880  # largest number of minutes of a job: few partitions grant more than two days
MEMORY = 4000  # MB
MEMORY_OF_A_GPU = 64_000  # MB

Ask = Callable[..., int | str | None]  # takes a job's wildcards and, if Snakemake counts them, its attempts


def of_job(graph: Graph, node: Callable[[Any], Node]) -> dict[str, Ask]:
    """Return the resources of a job; `node` returns the node of the job's wildcards.

    The GPUs train or evaluate, or belong to a vLLM server. A job that is tried again gets more
    memory and time: it may have failed for lack of them.
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
    """Return the largest number of GPUs, of memory and of machines that one of these nodes asks for."""
    return {
        "gpu": lambda w: max(graph.machine(node).gpus for node in nodes()),
        "mem_mb": lambda w: max(memory(graph, node) for node in nodes()),
        **_on_nodes(lambda w: max(graph.machine(node).nodes for node in nodes())),
    }


def memory(graph: Graph, node: Node) -> int:
    """Return MB of a machine's memory, which all weights pass in float32 on their way to a GPU."""
    machine = graph.machine(node)
    gpus = machine.gpus // machine.nodes
    return graph.resources(node).mem_mb or MEMORY + gpus * MEMORY_OF_A_GPU


def _minutes(graph: Graph, node: Node) -> int:
    """Return the minutes of a job, at most LONGEST; the next job continues a stage from its checkpoint."""
    return min(graph.resources(node).runtime or MINUTES, LONGEST)


def _on_nodes(machines: Callable[[Any], int]) -> dict[str, Ask]:
    """Return the number of nodes of a job and, if there are several, options for the Slurm executor.

    With `mpi` the executor starts a job without its own srun; otherwise it would ask for `tasks` on each GPU.
    None means that an option is not set.
    """

    def of_several(value: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda w: value(w) if machines(w) > 1 else None

    return {
        "nodes": machines,
        "mpi": of_several(lambda w: "srun"),
        "tasks": of_several(machines),
        "tasks_per_gpu": of_several(lambda w: 0),
    }
