"""The plan of a recipe at a scale: every distinct job with how often it runs, and what all of them cost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from encore.errors import UserError, nearest
from encore.planning import estimate, memory, remedies
from encore.planning.estimate import HOUR, Estimate
from encore.planning.hardware import GPU, GPUS, Assumptions, change, machine, named_in
from encore.planning.job import Job
from encore.planning.jobs import of_node
from encore.planning.known import of_model
from encore.recipe.graph import Graph, Node
from encore.recipe.recipe import Recipe

KEYS = ("recipe", "scale", "seeds", "gpus")
DEFAULT = "H100"  # where neither the command line nor the recipe's line on its cost names a GPU


@dataclass(frozen=True)
class Row:
    """Jobs that cost the same."""

    estimate: Estimate
    nodes: tuple[Node, ...]
    remedies: tuple[str, ...]
    other: float  # bytes of activations with checkpointing where there is none, and without it where there is

    @property
    def name(self) -> str:
        first = self.nodes[0]
        return f"{first.name} (eval)" if first.kind == "eval" else first.name


@dataclass(frozen=True)
class Plan:
    recipe: str
    scale: str
    gpu: GPU
    gpus: int | None  # of the command line
    assumed: Assumptions
    rows: tuple[Row, ...]
    seeds: int

    @property
    def gpu_hours(self) -> float:
        return sum(row.estimate.gpu_hours * len(row.nodes) for row in self.rows)

    @property
    def hours(self) -> float:
        """Of all jobs, one after another."""
        return sum(row.estimate.hours * len(row.nodes) for row in self.rows)

    @property
    def money(self) -> float | None:
        return None if self.assumed.price is None else self.gpu_hours * self.assumed.price

    @property
    def disk(self) -> float:
        """Bytes at the fullest: models from the Hub, what stages keep, the state of the largest one."""
        kept, states = 0.0, [0.0]
        for row in self.rows:
            product, state = estimate.disk(row.estimate.job)
            kept += product * len(row.nodes)
            states.append(state)
        return kept + max(states) + self._downloads()

    def _downloads(self) -> float:
        jobs = [row.estimate.job for row in self.rows]
        models = {one for job in jobs for one in (job.policy, job.reference, job.critic, *job.rewards) if one}
        models |= {judge for job in jobs for judge, _ in job.judges}
        return sum(2.0 * of_model(one).parameters for one in models if "hub" in json.loads(one))

    @property
    def fits(self) -> bool:
        return all(row.estimate.fits for row in self.rows)


def make(graph: Graph, given: Mapping[str, Any]) -> Plan:
    """The plan of `recipe`, `scale`, `seeds`, `gpus` and assumptions, as the command line has them.

    Raises UserError for a key or value that is unknown.
    """
    fields = [*Assumptions.__dataclass_fields__]
    for key in given:
        if key not in KEYS and key not in fields:
            raise UserError(f"{key}: unknown key{nearest(key, [*KEYS, *fields])}")
    assumed = change(Assumptions(), {key: value for key, value in given.items() if key in fields})
    name, scale = str(given.get("recipe", "")), str(given.get("scale", "cpu"))
    if name not in graph.recipes:
        raise UserError(f'recipe: no recipe "{name}"{nearest(name, list(graph.recipes))}')
    recipe = graph.recipes[name]
    recipe.require_scale(scale, "scale")
    seeds = given.get("seeds")
    if seeds is not None and (isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1):
        raise UserError(f"seeds: expected a whole number of at least 1, got {seeds}")
    most, gpu = None, gpu_of(recipe, scale)
    if "gpus" in given:
        most, gpu = machine(given["gpus"])
    arms, chosen = recipe.selection(scale, "report", seeds)
    nodes = graph.grid(name, scale, arms, chosen)
    rows = rows_of(graph, nodes, gpu, most, assumed)
    return Plan(name, scale, gpu, most, assumed, tuple(rows), len(chosen))


def gpu_of(recipe: Recipe, scale: str) -> GPU:
    """The GPU that the recipe's line on its cost names."""
    return named_in(recipe.spec.get("cost", {}).get(scale, "")) or GPUS[DEFAULT]


def rows_of(graph: Graph, nodes: list[Node], gpu: GPU, most: int | None, assumed: Assumptions) -> list[Row]:
    """The jobs of these nodes; those that cost the same are one row."""
    alike: dict[Job | tuple[str, str, str], list[Node]] = {}
    for node in nodes:
        try:
            job: Job | tuple[str, str, str] = of_node(graph, node, assumed, most)
        except UserError as error:
            job = (node.name, node.kind, str(error))
        alike.setdefault(job, []).append(node)
    return [_row(job, tuple(of_one), gpu, assumed) for job, of_one in alike.items()]


def _row(job: Job | tuple[str, str, str], nodes: tuple[Node, ...], gpu: GPU, assumed: Assumptions) -> Row:
    if isinstance(job, tuple):
        return Row(estimate.impossible(Job(job[0], job[1], 0), job[2]), nodes, (), 0.0)
    found = estimate.of_job(job, gpu, assumed)
    other = 0.0
    if job.policy and job.training and job.gpus:
        turned = replace(job.training, checkpointing=not job.training.checkpointing)
        other = memory.activations(job, turned)
    return Row(found, nodes, tuple(remedies.smallest(job, gpu) if found.lacks else ()), other)


def seconds(graph: Graph, node: Node, on: str) -> float:
    """How long a node takes by the assumptions, on the GPU that `on` names; 0 where it cannot be planned."""
    try:
        job = of_node(graph, node, Assumptions())
        found = estimate.of_job(job, named_in(on) or GPUS[DEFAULT], Assumptions())
    except UserError:
        return 0.0
    return HOUR * found.hours
