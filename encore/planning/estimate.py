"""What a job costs on named GPUs: operations, tokens, hours, disk; and whether it fits into their memory."""

from dataclasses import dataclass

from encore.planning import memory, rollout
from encore.planning.architecture import Architecture
from encore.planning.hardware import GIB, GPU, NODE, Assumptions
from encore.planning.job import Job, Training
from encore.planning.known import of_model
from encore.planning.memory import Memory

CPU = (
    20e9  # operations a second of a job without a GPU: models of a tenth of a million parameters, one thread
)
SYNC = 10e9  # bytes a second at which new weights reach an engine
SLOWER = 8  # how many times the operations of bfloat16 outnumber those of float32
HOUR = 3600.0


@dataclass(frozen=True)
class Estimate:
    job: Job
    memory: Memory
    generated: float  # tokens
    trained: float  # tokens, each as often as it is learnt from
    flops: float
    hours: float
    rate: float  # tokens generated a second by a GPU; 0: none
    lacks: tuple[str, ...]  # why it cannot run so; nothing: it can
    warnings: tuple[str, ...]

    @property
    def gpu_hours(self) -> float:
        return self.hours * self.job.all_gpus

    @property
    def fits(self) -> bool:
        return not self.lacks


def of_job(job: Job, gpu: GPU, assumed: Assumptions) -> Estimate:
    """The estimate of one job; `gpu` is of no account where the job has none."""
    if job.policy is None:
        return Estimate(job, Memory(), 0.0, 0.0, 0.0, 0.0, 0.0, (), ())
    policy = of_model(job.policy)
    generation, training = job.generation, job.training
    generated = generation.completions * generation.mean if generation else 0.0
    trained = training.steps * training.batch * training.mean if training else 0.0
    compared = sum(2 * of_model(judge).active * tokens for judge, tokens in job.judges)
    flops = _operations(job, policy) + compared
    if not job.gpus:
        return Estimate(job, Memory(), generated, trained, flops, flops / CPU / HOUR, 0.0, (), ())
    held = memory.of_trainer(job, gpu)
    seconds = _training(job, policy, gpu, assumed) + compared / (gpu.flops * assumed.prefill)
    speed = 0.0
    if generation:
        on = job.server if generation.engine == "server" else job.gpus
        seconds += rollout.seconds(policy, generation, on, gpu, assumed)
        speed = rollout.rate(policy, generation, on, gpu, assumed)
        if training and generation.engine in ("colocate", "server"):
            seconds += generation.completions / generation.rollout * 2 * policy.parameters / SYNC
    return Estimate(
        job=job,
        memory=held,
        generated=generated,
        trained=trained,
        flops=flops,
        hours=seconds / HOUR,
        rate=speed,
        lacks=lacks(job, policy, held, gpu),
        warnings=_warnings(job),
    )


def impossible(job: Job, why: str) -> Estimate:
    """Of a job that is refused before anything of it can be counted."""
    return Estimate(job, Memory(), 0.0, 0.0, 0.0, 0.0, 0.0, (why,), ())


def _forward(policy: Architecture, tokens: float) -> float:
    """Operations of one forward pass for one token, in a text of so many."""
    return 2 * policy.active + 2 * policy.layers * policy.attention * tokens


def _operations(job: Job, policy: Architecture) -> float:
    """Operations of the mathematics: what is computed twice to save memory counts once."""
    total = 0.0
    if generation := job.generation:
        each = generation.prompt + generation.mean
        total += (
            generation.completions * each * _forward(policy, each / 2) + 2 * policy.active * generation.read
        )
    if training := job.training:
        total += _passes(job, policy, training, again=False)
    return total


def _passes(job: Job, policy: Architecture, training: Training, again: bool) -> float:
    """Operations of all passes over what is trained on; `again`: with recomputation."""
    tokens = training.steps * training.batch * training.mean
    backward = 1 if training.lora else 2
    extra = 1 if again and training.checkpointing else 0
    each = _forward(policy, training.mean / 2)
    total = (1 + backward + extra + training.scored) * each
    uses = training.scored or 1.0  # the reference and rewards are asked once a rollout
    if job.reference:
        total += uses * _forward(of_model(job.reference), training.mean / 2)
    if job.critic:
        total += (3 + extra + uses) * _forward(of_model(job.critic), training.mean / 2)
    total += sum(uses * _forward(of_model(one), training.mean / 2) for one in job.rewards)
    return tokens * total


def _training(job: Job, policy: Architecture, gpu: GPU, assumed: Assumptions) -> float:
    """Seconds of the passes, or of what the GPUs exchange for them where that takes longer."""
    training = job.training
    if training is None:
        return 0.0
    reached = gpu.flops * assumed.mfu * (assumed.moe if policy.sparse else 1.0)
    reached /= 1 if training.half else SLOWER
    computed = _passes(job, policy, training, again=True) / (job.gpus * reached)
    return max(computed, _exchanged(job, policy, training, gpu, assumed))


def _exchanged(job: Job, policy: Architecture, training: Training, gpu: GPU, assumed: Assumptions) -> float:
    """Seconds in which gradients, and under FSDP weights as well, pass between the GPUs."""
    if job.gpus == 1:
        return 0.0
    link = gpu.link if job.gpus <= NODE else assumed.between_nodes
    if not job.shard:
        trained = policy.parameters if not training.lora else training.lora * policy.linear
        return training.steps * 2 * training.bytes_a_weight * trained / link
    parts = max(training.batch / job.gpus / training.rows, 1.0)  # micro-batches of a GPU, a step
    gathers = 3 + training.scored + (1 if job.reference else 0)  # forward, backward, gradients; scoring
    return training.steps * parts * gathers * 2 * policy.parameters / link


def lacks(job: Job, policy: Architecture, held: Memory, gpu: GPU) -> tuple[str, ...]:
    """What stands in the way of the job on this GPU, each in a line."""
    found = []
    limit = memory.room(gpu)
    if held.total > limit:
        found.append(f"{held.total / GIB:,.0f} GiB a GPU, {gpu.name} has {limit / GIB:,.0f} to give")
    generation = job.generation
    if generation and generation.engine != "hf" and (generation.completions or generation.read):
        need, share = memory.of_engine(policy, generation), generation.share * gpu.memory
        if need > share:
            found.append(
                f"vLLM needs {need / GIB:,.0f} GiB of each of {generation.width} GPUs for the weights and "
                f"one full sequence, its share is {share / GIB:,.0f}"
            )
    longest = job.training.longest if job.training else 0
    if policy.positions and longest > policy.positions and not job.stretched:
        found.append(f"sequences of {longest:,} tokens, {policy.name} has {policy.positions:,} positions")
    return tuple(found)


def _warnings(job: Job) -> tuple[str, ...]:
    found = list(job.unknown)
    if job.all_gpus > NODE:
        found.append(f"{job.all_gpus} GPUs are {-(-job.all_gpus // NODE)} nodes of {NODE}")
    host = memory.of_host(job)
    if host > NODE * 64e9:
        found.append(f"{host / 1e9:,.0f} GB of a node's memory, through which each process loads in float32")
    return tuple(found)


def disk(job: Job) -> tuple[float, float]:
    """Bytes of what a stage keeps, and of its state while it runs: two of them, as one replaces the other."""
    if job.policy is None or job.training is None:
        return 0.0, 0.0
    policy, training = of_model(job.policy), job.training
    trained = training.lora * policy.linear if training.lora else policy.parameters
    state = (training.bytes_a_weight + training.optimizer) * trained
    if job.critic:
        state += (training.bytes_a_weight + training.optimizer) * of_model(job.critic).parameters
    return job.saved * policy.parameters, 2 * state
