"""The resources of a job, by what its stage or evaluation asks for: GPUs, nodes, memory, time."""

from collections.abc import Callable
from typing import Any

from encore.recipe.graph import Graph, Node

MINUTES = 120
LONGEST = 2880  # most minutes of a job: few partitions grant more than two days
MEMORY = 4000  # MB
MEMORY_OF_A_GPU = 64_000  # MB

Ask = Callable[..., int | str | None]  # takes a job's wildcards and, if Snakemake counts them, its attempts


def of_job(graph: Graph, node: Callable[[Any], Node]) -> dict[str, Ask]:
    """Return the resources of the job whose wildcards `node` reads.

    The GPUs are those that train or evaluate and those of a vLLM server. A job that is tried again gets more
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
    """Return the most GPUs, memory and machines that one of these nodes asks for."""
    return {
        "gpu": lambda w: max(graph.machine(node).gpus for node in nodes()),
        "mem_mb": lambda w: max(memory(graph, node) for node in nodes()),
        **_on_nodes(lambda w: max(graph.machine(node).nodes for node in nodes())),
    }


def memory(graph: Graph, node: Node) -> int:
    """Return MB of a machine's memory. Weights pass through it in float32 before they are on a GPU."""
    machine = graph.machine(node)
    gpus = machine.gpus // machine.nodes
    return graph.resources(node).mem_mb or MEMORY + gpus * MEMORY_OF_A_GPU


def _minutes(graph: Graph, node: Node) -> int:
    """Return the minutes of a job, at most LONGEST: a stage goes on from its checkpoint in the next job."""
    return min(graph.resources(node).runtime or MINUTES, LONGEST)


def _on_nodes(machines: Callable[[Any], int]) -> dict[str, Ask]:
    """Return how many nodes a job is on, and options for Snakemake's executor of Slurm jobs if several.

    With `mpi` the executor starts a job without its own srun; otherwise it would ask for `tasks` on each GPU.
    None: not asked for.
    """

    def of_several(value: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda w: value(w) if machines(w) > 1 else None

    return {
        "nodes": machines,
        "mpi": of_several(lambda w: "srun"),
        "tasks": of_several(machines),
        "tasks_per_gpu": of_several(lambda w: 0),
    }
