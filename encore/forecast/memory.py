"""The GPU memory of a job by part, in bytes, on the GPU that holds most.

A trained number takes 4 bytes of weight, 4 of gradient and 8 of Adam's moments (mixed precision keeps the
weights in float32 and computes in bfloat16). FSDP spreads these three over all GPUs and gathers a layer at a
time (ZeRO, arXiv 1910.02054, §3). The logits are never complete: TRL 1.16 computes log-probabilities tile by
tile.

The numbers count the memory in use, not the memory that a process has taken from the system. On a CPU a stage
asks glibc to keep freed memory (`keep_memory`), which made two processes of 94M parameters look 206 MB larger
than planned.
"""

from dataclasses import dataclass, fields

from encore.forecast.architecture import Architecture, Model
from encore.forecast.hardware import GIB, GPU, NODE, USABLE
from encore.forecast.job import Generation, Job, Training
from encore.forecast.model_size import of_model, saved_a_token

TILE = 4096  # number of tokens whose logits TRL's kernel holds at a time, in slices of the vocabulary
SLICE = 8192  # columns of the vocabulary in a slice
ENGINE = 2 * GIB  # bytes of a vLLM engine besides weights and cache: graphs, activations, its own context
NF4 = 0.52  # bytes of a weight of four bits, with its share of the scales


@dataclass(frozen=True)
class Memory:
    weights: float = 0.0  # bytes of the weights, including the bfloat16 copy that computes
    gradients: float = 0.0
    optimizer: float = 0.0
    activations: float = 0.0
    reference: float = 0.0
    # bytes of weights, gradients and optimizer; its activations never coincide with the policy's
    critic: float = 0.0
    reward: float = 0.0  # bytes of reward models and judges
    cache: float = 0.0  # bytes of keys and values, for generation without vLLM
    engine: float = 0.0  # vLLM's share: its weights and cache
    asleep: float = 0.0  # the part of `engine` that it gives back while the trainer works

    @property
    def total(self) -> float:
        """The bytes at the fullest moment: the larger of a rollout and an update, which take turns."""
        together = sum(getattr(self, field.name) for field in fields(self)) - self.asleep
        return together - min(self.activations, self.cache + self.asleep)


def of_trainer(job: Job, gpu: GPU) -> Memory:
    """Return the memory that a job needs on a GPU that trains, or that generates without a trainer."""
    assert job.policy is not None
    policy, training = of_model(job.policy), job.training
    if training is None:
        return _of_sampler(job, policy, gpu)
    parts = job.gpus if job.shard else 1
    adapters = training.lora * policy.linear if training.lora else 0
    trained = adapters or policy.parameters
    weights = (_frozen(policy, training) + training.bytes_a_weight * adapters) / parts
    weights += _computed_in(policy, training, job.shard)
    engine = cache = asleep = 0.0
    if job.generation and job.generation.engine == "colocate":
        engine = job.generation.share * gpu.memory
        asleep = engine if job.generation.sleeps else 0.0
    if job.generation and job.generation.engine == "hf":
        # autocast makes values bfloat16; keys, which are rotated in float32, stay float32
        each = 3 if training.half and training.bytes_a_weight == 4 else training.bytes_a_weight
        cache = cached(policy, job.generation, each) * job.generation.rollout / max(job.gpus, 1)
    return Memory(
        weights=weights,
        gradients=training.bytes_a_weight * trained / parts,
        optimizer=training.optimizer * trained / parts,
        activations=activations(job, training),
        reference=_held(job.reference, training, job),
        critic=_critic(job, training),
        reward=sum(4 * of_model(model).parameters for model in job.rewards),
        cache=cache,
        engine=engine,
        asleep=asleep,
    )


def _of_sampler(job: Job, policy: Architecture, gpu: GPU) -> Memory:
    generation = job.generation
    rewards = sum(4 * of_model(model).parameters for model in job.rewards)
    rewards += sum(
        2 * of_model(model).parameters for model in {judge for judge, _ in job.judges}
    )  # a judge's weight has 2 bytes, as it was published
    reference = 4 * of_model(job.reference).parameters if job.reference else 0.0
    if generation is None:
        return Memory(weights=2 * policy.parameters, reward=rewards, reference=reference)
    if generation.engine == "vllm":
        return Memory(engine=generation.share * gpu.memory, reward=rewards, reference=reference)
    # engine hf generates as many rows at once as fit, so the memory must hold at least one
    model = cached(policy, generation, generation.bytes_a_weight)
    return Memory(
        weights=generation.bytes_a_weight * policy.parameters,
        cache=model,
        reward=rewards,
        reference=reference,
    )


def _of_engine(policy: Architecture, generation: Generation) -> float:
    """Return the least memory that vLLM needs of one GPU: its part of the weights and one full sequence."""
    return (2 * policy.parameters + cached(policy, generation, 2)) / generation.width + ENGINE


def cached(policy: Architecture, generation: Generation, bytes_a_number: int) -> float:
    """Return the bytes of keys and values of one completion at its full length."""
    return policy.layers * policy.cached * generation.full * bytes_a_number


def activations(job: Job, training: Training) -> float:
    """Return the bytes of activations of a micro-batch at full length.

    They are the outputs that are kept for the backward pass, and tiles of logits.
    """
    assert job.policy is not None
    policy, tokens = of_model(job.policy), training.rows * training.computed
    layer = saved_a_token(job.policy, training.half) * tokens
    mask = 2 * training.rows * training.computed**2 if training.padded else 0.0
    # autocast leaves the residual stream in float32; FSDP, which casts the embedding, does not
    rounded = training.half and (job.shard or training.bytes_a_weight == 2)
    stream = (2 if rounded else 4) * policy.hidden * tokens
    once = layer + mask
    kept = policy.layers * stream + once if training.checkpointing else policy.layers * once
    tile = 3 * 4 * min(tokens, TILE) * min(policy.vocabulary, SLICE)
    # gradient of the head, added up in float32 beside the gradient of the optimizer
    return kept + 2 * stream + tile + 4 * policy.head


def _computed_in(policy: Architecture, training: Training, shard: bool) -> float:
    """Return the bytes of the copy of the weights that a pass computes with, beside the kept weights."""
    size = 2 if training.half else 4
    # the weights of two layers at a time, of embedding and head throughout, and the gradients of one
    if shard:
        throughout = policy.head + (0 if policy.tied else policy.embedding)
        return size * (3 * policy.largest_layer + 2 * throughout)
    return size * policy.parameters if training.half and training.bytes_a_weight == 4 else 0.0


def _frozen(policy: Architecture, training: Training) -> float:
    """Return the bytes of the policy's weights without adapters, in four bits including their scales."""
    return _stored(policy, training, NF4 if training.nf4 else training.bytes_a_weight)


def _stored(model: Architecture, training: Training, linear: float) -> float:
    """Return the bytes of a model's weights, of which each in a linear layer takes `linear` bytes.

    The embedding and the head have the precision of training.
    """
    outside = model.head + (0 if model.tied else model.embedding)
    return training.bytes_a_weight * outside + linear * (model.parameters - outside)


def _held(model: Model | None, training: Training, job: Job) -> float:
    """Return the bytes of a frozen model, on one GPU; its weights have the precision of the policy's.

    In mixed precision the linear layers of a reference of GRPO or PPO are kept in the type in which they
    compute (encore/learning/reference.py). Experts are not linear layers.
    """
    if model is None:
        return 0.0
    other, mixed = of_model(model), training.half and training.bytes_a_weight == 4
    if mixed and job.kind in ("grpo", "ppo") and not (job.shard or training.synced or other.sparse):
        return _stored(other, training, 2)
    return training.bytes_a_weight * other.parameters / (job.gpus if job.shard else 1)


def _critic(job: Job, training: Training) -> float:
    if job.critic is None:
        return 0.0
    critic = of_model(job.critic)
    size = critic.parameters - critic.head
    learnt = training.lora * critic.linear if training.lora else size
    held = training.bytes_a_weight * (size + learnt) + training.optimizer * learnt
    return held / (job.gpus if job.shard else 1) + (2 * size if training.half and not job.shard else 0)


def of_host(job: Job) -> float:
    """Return the bytes of main memory that a job needs on a node: each process loads weights in float32."""
    if job.policy is None or job.training is None:
        return 0.0
    models = [job.policy, job.reference, job.critic, *job.rewards]
    sizes = sum(of_model(bytes_of_row).parameters for bytes_of_row in models if bytes_of_row)
    return 4.0 * sizes * min(job.gpus, NODE)


def room(gpu: GPU) -> float:
    """Return the bytes of a GPU that a job can have."""
    return USABLE * gpu.memory


def lacks(job: Job, policy: Architecture, held: Memory, gpu: GPU) -> tuple[str, ...]:
    """Return the reasons why the job cannot run on this GPU, a line for each; () if it can."""
    reasons = []
    limit = room(gpu)
    if held.total > limit:
        reasons.append(f"{held.total / GIB:,.0f} GiB a GPU, {gpu.name} has {limit / GIB:,.0f} to give")
    generation = job.generation
    if generation and generation.engine != "hf" and (generation.completions or generation.read):
        need, share = _of_engine(policy, generation), generation.share * gpu.memory
        if need > share:
            reasons.append(
                f"vLLM needs {need / GIB:,.0f} GiB of each of {generation.width} GPUs for the weights and "
                f"one full sequence, its share is {share / GIB:,.0f}"
            )
    longest = job.training.longest if job.training else 0
    if policy.positions and longest > policy.positions and not job.stretched:
        reasons.append(f"sequences of {longest:,} tokens, {policy.name} has {policy.positions:,} positions")
    return tuple(reasons)


def disk(job: Job) -> tuple[float, float]:
    """Return the bytes of a stage's product, and of two checkpoints.

    There are two because a new checkpoint is written before the old one is removed.
    """
    if job.policy is None or job.training is None:
        return 0.0, 0.0
    policy, training = of_model(job.policy), job.training
    trained = training.lora * policy.linear if training.lora else policy.parameters
    state = (training.bytes_a_weight + training.optimizer) * trained
    if job.critic:
        state += (training.bytes_a_weight + training.optimizer) * of_model(job.critic).parameters
    return job.saved * policy.parameters, 2 * state
