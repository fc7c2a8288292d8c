"""The plan of a recipe at a scale: every distinct job with how often it runs, and what all of them cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from encore.errors import UserError, nearest
from encore.forecast import memory, time
from encore.forecast.hardware import GPU, GPUS, NODE, Assumptions, change, machine, named_in
from encore.forecast.job import Job
from encore.forecast.memory import Memory
from encore.forecast.model_size import of_model
from encore.forecast.work import of_node
from encore.recipe.graph import Graph, Node
from encore.recipe.machine import GgufModel, HubModel, WheelModel
from encore.recipe.recipe import Recipe

KEYS = ("recipe", "scale", "seeds", "gpus")
# the GPU that is assumed if neither the command line nor the recipe's line on its cost names one
DEFAULT = "H100"
HOUR = 3600.0
# operations a second of a job without a GPU, on one thread of a server's processor: for models of a tenth of
# a million parameters, and for models from REAL parameters on, whose matrices keep the processor busy
CPU, BUSY_CPU = 20e9, 50e9
REAL = 20e6
SYNC = 10e9  # bytes a second at which new weights reach an engine


@dataclass(frozen=True)
class Estimate:
    """The cost of a job; all fields but `job` are empty if the job computes nothing."""

    job: Job
    memory: Memory = field(default_factory=Memory)
    generated: float = 0.0  # number of generated tokens
    trained: float = 0.0  # number of tokens trained on, counted again in every epoch
    flops: float = 0.0
    hours: float = 0.0
    rate: float = 0.0  # tokens that a GPU generates in a second; 0 without generation
    lacks: tuple[str, ...] = ()  # reasons why the job cannot run with these settings; () if it can
    warnings: tuple[str, ...] = ()

    @property
    def gpu_hours(self) -> float:
        return self.hours * self.job.all_gpus

    @property
    def fits(self) -> bool:
        return not self.lacks


def of_job(job: Job, gpu: GPU, assumed: Assumptions) -> Estimate:
    """Return the estimate of one job; `gpu` does not matter if the job uses none."""
    if job.policy is None:
        return Estimate(job)
    policy = of_model(job.policy)
    generation, training = job.generation, job.training
    generated = generation.completions * generation.mean if generation else 0.0
    trained = training.steps * training.batch * training.mean if training else 0.0
    compared = sum(2 * of_model(judge).active * tokens for judge, tokens in job.judges)
    flops = time.operations(job, policy) + compared
    if not job.gpus:
        reached = CPU if policy.parameters < REAL else BUSY_CPU
        return Estimate(job, Memory(), generated, trained, flops, flops / reached / HOUR)
    held = memory.of_trainer(job, gpu)
    seconds = time.of_training(job, policy, gpu, assumed)
    speed = 0.0
    if generation:
        gpus = job.server if generation.engine == "server" else job.gpus
        sampling = time.of_generation(policy, generation, gpus, gpu, assumed)
        speed = time.rate(policy, generation, gpus, gpu, assumed)
        seconds = max(seconds, sampling) if generation.ahead else seconds + sampling
        seconds += assumed.start if generation.engine != "hf" else 0.0
        if training and generation.engine in ("colocate", "server"):
            seconds += generation.completions / generation.rollout * 2 * policy.parameters / SYNC
    seconds += compared / (gpu.flops * assumed.prefill)
    return Estimate(
        job=job,
        memory=held,
        generated=generated,
        trained=trained,
        flops=flops,
        hours=seconds / HOUR,
        rate=speed,
        lacks=memory.lacks(job, policy, held, gpu),
        warnings=_warnings(job),
    )


def _warnings(job: Job) -> tuple[str, ...]:
    """Return warnings about a job that may fit all the same."""
    unknown = list(job.unknown)
    if job.all_gpus > NODE:
        unknown.append(f"{job.all_gpus} GPUs are {-(-job.all_gpus // NODE)} nodes of {NODE}")
    host = memory.of_host(job)
    if host > NODE * 64e9:
        unknown.append(
            f"{host / 1e9:,.0f} GB of a node's memory, through which each process loads in float32"
        )
    return tuple(unknown)


@dataclass(frozen=True)
class Row:
    """Jobs that cost the same."""

    estimate: Estimate
    nodes: tuple[Node, ...]
    other: float  # bytes of activations if gradient checkpointing were switched the other way

    @property
    def name(self) -> str:
        first = self.nodes[0]
        return f"{first.name} (eval)" if first.kind == "eval" else first.name


@dataclass(frozen=True)
class Plan:
    recipe: str
    scale: str
    gpu: GPU
    gpus: int | None  # number given on the command line
    assumed: Assumptions
    rows: tuple[Row, ...]
    seeds: int

    @property
    def gpu_hours(self) -> float:
        return sum(row.estimate.gpu_hours * len(row.nodes) for row in self.rows)

    @property
    def hours(self) -> float:
        """The hours of all jobs, one after another."""
        return sum(row.estimate.hours * len(row.nodes) for row in self.rows)

    @property
    def money(self) -> float | None:
        return None if self.assumed.price is None else self.gpu_hours * self.assumed.price

    @property
    def disk(self) -> float:
        """The most bytes on disk: downloaded models, stages' products, and the largest checkpoint twice."""
        kept, states = 0.0, [0.0]
        for row in self.rows:
            product, state = memory.disk(row.estimate.job)
            kept += product * len(row.nodes)
            states.append(state)
        return kept + max(states) + self._downloads()

    def _downloads(self) -> float:
        jobs = [row.estimate.job for row in self.rows]
        models = {
            model for job in jobs for model in (job.policy, job.reference, job.critic, *job.rewards) if model
        }
        models |= {judge for job in jobs for judge, _ in job.judges}
        bytes_each = {
            HubModel: 2,
            GgufModel: 4,
            WheelModel: 4,
        }  # bytes of a weight that is fetched, or dequantized into a cache
        return sum(float(bytes_each.get(type(model), 0)) * of_model(model).parameters for model in models)

    @property
    def fits(self) -> bool:
        return all(row.estimate.fits for row in self.rows)


def make(graph: Graph, options: Mapping[str, Any]) -> Plan:
    """Return the plan that `options`, the key=value words of the command line, ask for.

    Their keys are KEYS and the fields of `Assumptions`. Raises UserError for an unknown key or value.
    """
    fields = [*Assumptions.__dataclass_fields__]
    for key in options:
        if key not in KEYS and key not in fields:
            raise UserError(f"{key}: unknown key{nearest(key, [*KEYS, *fields])}")
    assumed = change(Assumptions(), {key: value for key, value in options.items() if key in fields})
    name, scale = str(options.get("recipe", "")), str(options.get("scale", "cpu"))
    if name not in graph.recipes:
        raise UserError(f'recipe: no recipe "{name}"{nearest(name, list(graph.recipes))}')
    recipe = graph.recipes[name]
    recipe.require_scale(scale, "scale")
    seeds = options.get("seeds")
    if seeds is not None and (isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1):
        raise UserError(f"seeds: expected a whole number of at least 1, got {seeds}")
    most, gpu = None, gpu_of(recipe, scale)
    if "gpus" in options:
        most, gpu = machine(options["gpus"])
    arms, chosen = recipe.selection(scale, "report", seeds)
    nodes = graph.grid(name, scale, arms, chosen)
    rows = rows_of(graph, nodes, gpu, most, assumed)
    return Plan(name, scale, gpu, most, assumed, tuple(rows), len(chosen))


def gpu_of(recipe: Recipe, scale: str) -> GPU:
    """Return the GPU that the recipe's line on its cost names; DEFAULT if it names none."""
    return named_in(recipe.document.cost.get(scale, "")) or GPUS[DEFAULT]


def rows_of(graph: Graph, nodes: list[Node], gpu: GPU, most: int | None, assumed: Assumptions) -> list[Row]:
    """Return the rows of a plan of these nodes; jobs that cost the same share a row, as all seeds do."""
    alike: dict[tuple[Job, str], list[Node]] = {}
    of_seeds: dict[tuple[str, ...], list[Node]] = {}
    for node in nodes:
        if node.without_seed not in of_seeds:
            try:
                job, refused = of_node(graph, node, assumed, most), ""
            except UserError as error:
                job, refused = Job(node.name, node.kind, gpus=0), str(error)
            of_seeds[node.without_seed] = alike.setdefault((job, refused), [])
        of_seeds[node.without_seed].append(node)
    rows = []
    for (job, refused), same in alike.items():
        estimate = Estimate(job, lacks=(refused,)) if refused else of_job(job, gpu, assumed)
        rows.append(Row(estimate, tuple(same), _other(job)))
    return rows


def _other(job: Job) -> float:
    """Return the bytes of a job's activations if it switched gradient checkpointing the other way."""
    if not (job.policy and job.training and job.gpus):
        return 0.0
    turned = replace(job.training, checkpointing=not job.training.checkpointing)
    return memory.activations(job, turned)


def seconds(graph: Graph, node: Node, on: str) -> float:
    """Return the planned seconds of a node on the GPU that the text `on` names; 0 if it cannot be planned."""
    try:
        job = of_node(graph, node, Assumptions())
        estimate = of_job(job, named_in(on) or GPUS[DEFAULT], Assumptions())
    except UserError:
        return 0.0
    return HOUR * estimate.hours
