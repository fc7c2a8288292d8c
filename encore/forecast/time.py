"""The time of generation and training: operations over a GPU's speed, or bytes over its bandwidth.

Generation is followed token by token, from the memory bandwidth of its GPUs. Each step of decoding reads the
weights once and the keys and values of every running sequence (roofline; Pope et al. 2022, arXiv 2211.05102,
§2). As completions end, fewer are left to share the reading of the weights, and the longest one decides when
the rollout is over. Lengths are assumed to be exponential, cut at the cap, with the assumed mean.
"""

import math

from encore.forecast.architecture import Architecture
from encore.forecast.hardware import GPU, NODE, Assumptions
from encore.forecast.job import Generation, Job, Training
from encore.forecast.memory import ENGINE
from encore.forecast.model_size import of_model

STEP = 4e-3  # seconds of a decoding step of vLLM, apart from reading memory: scheduling and launches
SEQUENCE = 16e-6  # seconds that each sequence adds to a step: sampling and bookkeeping
HOP = 20e-6  # seconds of an exchange between the GPUs of a node; a layer has two
FAR = 80e-6  # seconds of an exchange between GPUs of several nodes
EAGER = 1.0e-3  # seconds of a layer in a step of transformers' generate, which launches kernels one by one
MOST = 1024  # most sequences that an engine runs at once
POINTS = 256  # points of the integral over a rollout
SLOWER = 8  # ratio of the speeds of bfloat16 and float32 operations


def of_generation(
    policy: Architecture, generation: Generation, gpus: int, gpu: GPU, assumed: Assumptions
) -> float:
    """Return the seconds that `gpus` GPUs take to read all prompts and to generate all completions."""
    copies = max(gpus // generation.width, 1)
    if assumed.rate and generation.completions:
        return generation.completions * generation.mean / (assumed.rate * gpus)
    reading = generation.completions * generation.prompt + generation.read
    read = 2 * policy.active * reading / (gpus * gpu.flops * assumed.prefill)
    if not generation.completions:
        return read
    each = max(generation.rollout / copies, 1.0)  # sequences of one copy of the model
    most = _at_once(policy, generation, gpu)
    if each <= most:
        seconds = _drained(policy, generation, each, gpu, assumed)
    else:  # when one sequence ends the next begins, until the last `most` are left
        context = generation.prompt + generation.mean
        steady = _step(policy, generation, most, context, gpu, assumed) * generation.mean / most
        seconds = (each - most) * steady + _drained(policy, generation, most, gpu, assumed)
    return read + seconds * generation.completions / generation.rollout


def rate(policy: Architecture, generation: Generation, gpus: int, gpu: GPU, assumed: Assumptions) -> float:
    """Return the tokens that one GPU generates in a second, averaged over a rollout."""
    took = of_generation(policy, generation, gpus, gpu, assumed)
    return generation.completions * generation.mean / took / gpus if took else 0.0


def scale_of(mean: float, cap: int) -> float:
    """Return theta such that min(X, cap), with X exponential of mean theta, has the mean `mean`."""
    low, high = 1e-6, 1e6
    share = min(max(mean / cap, 1e-6), 0.9999)
    for _ in range(80):  # theta (1 - exp(-1 / theta)) rises with theta
        middle = math.sqrt(low * high)
        if middle * -math.expm1(-1 / middle) < share:
            low = middle
        else:
            high = middle
    return low * cap


def _drained(
    policy: Architecture, generation: Generation, sequences: float, gpu: GPU, assumed: Assumptions
) -> float:
    """Return the seconds until `sequences` sequences that began together have all ended."""
    theta = scale_of(generation.mean, generation.cap)
    longest = min(generation.cap, theta * (math.log(sequences) + 0.577))  # the expected maximum
    longest = max(longest, generation.mean)
    part, total = longest / POINTS, 0.0
    for point in range(POINTS):
        at = (point + 0.5) * part
        left = max(sequences * math.exp(-at / theta), 1.0)
        total += part * _step(policy, generation, left, generation.prompt + at, gpu, assumed)
    return total


def _step(
    policy: Architecture,
    generation: Generation,
    sequences: float,
    context: float,
    gpu: GPU,
    assumed: Assumptions,
) -> float:
    """Return the seconds of one step of decoding, in which each sequence gets a token."""
    size, width = generation.bytes_a_weight, generation.width
    read = size * (_touched(policy, sequences) + sequences * context * policy.layers * policy.cached)
    memory = read / (width * gpu.bandwidth * assumed.mbu)
    computed = 2 * policy.active * sequences / (width * gpu.flops * assumed.prefill)
    if generation.engine == "hf":
        return max(memory, computed) + EAGER * policy.layers
    hops = 0.0 if width == 1 else 2 * policy.layers * (HOP if width <= NODE else FAR)
    return max(memory, computed) + STEP + SEQUENCE * sequences + hops


def _touched(policy: Architecture, sequences: float) -> float:
    """Return the expected number of parameters that a step of decoding reads.

    An expert is read only if at least one of the sequences visits it.
    """
    if not policy.sparse:
        return policy.active
    shared = policy.parameters - policy.embedding
    idle = shared - policy.active
    missed = (1 - policy.visited / policy.experts) ** sequences
    return policy.active + idle * (1 - missed)


def _at_once(policy: Architecture, generation: Generation, gpu: GPU) -> float:
    """Return how many sequences of mean length one copy of the model decodes at once."""
    if generation.engine == "hf":
        return math.inf  # TRL generates a whole rollout at once
    free = generation.share * gpu.memory * generation.width
    free -= 2 * policy.parameters + ENGINE * generation.width
    each = 2 * policy.layers * policy.cached * (generation.prompt + generation.mean)
    return min(max(free / each, 1.0), MOST)


def of_training(job: Job, policy: Architecture, gpu: GPU, assumed: Assumptions) -> float:
    """Return the seconds of a job's training; 0 if it trains nothing.

    They are the seconds of the passes, or of the exchange between the GPUs if it takes longer.
    """
    training = job.training
    if training is None:
        return 0.0
    reached = gpu.flops * assumed.mfu * (assumed.moe if policy.sparse else 1.0)
    reached /= 1 if training.half else SLOWER
    computed = _passes(job, policy, training, again=True) / (job.gpus * reached)
    return max(computed, _exchanged(job, policy, training, gpu, assumed))


def _exchanged(job: Job, policy: Architecture, training: Training, gpu: GPU, assumed: Assumptions) -> float:
    """Return the seconds in which the GPUs exchange gradients and, under FSDP, weights too."""
    if job.gpus == 1:
        return 0.0
    link = gpu.link if job.gpus <= NODE else assumed.between_nodes
    if not job.shard:
        trained = policy.parameters if not training.lora else training.lora * policy.linear
        return training.steps * 2 * training.bytes_a_weight * trained / link
    parts = max(training.batch / job.gpus / training.rows, 1.0)  # micro-batches of a GPU in a step
    # passes that gather the weights: forward, backward, gradients; scoring
    gathers = 3 + training.scored * training.rounds + (1 if job.reference else 0)
    return training.steps * parts * gathers * 2 * policy.parameters / link


def operations(job: Job, policy: Architecture) -> float:
    """Return the floating-point operations of a job.

    Operations that gradient checkpointing repeats are counted once.
    """
    total = 0.0
    if generation := job.generation:
        each = generation.prompt / generation.shared + generation.mean
        total += (
            generation.completions * each * _forward(policy, each / 2) + 2 * policy.active * generation.read
        )
    if training := job.training:
        total += _passes(job, policy, training, again=False)
    return total


def _passes(job: Job, policy: Architecture, training: Training, again: bool) -> float:
    """Return the operations of all passes over the training data.

    `again`: with what is computed again by gradient checkpointing, and with padding.
    """
    tokens = training.steps * training.batch * training.mean * (training.padding if again else 1.0)
    backward = 1 if training.lora else 2
    extra = 1 if again and training.checkpointing else 0
    each = _forward(policy, training.mean / 2)
    total = (1 + backward + extra + training.scored * training.rounds + training.mismatched) * each
    uses = (training.scored or 1.0) * training.rounds  # the reference and rewards run once for each rollout
    if job.reference:
        total += (uses + training.mismatched) * _forward(of_model(job.reference), training.mean / 2)
    if job.critic:
        total += (3 + extra + uses) * _forward(of_model(job.critic), training.mean / 2)
    total += sum(uses * _forward(of_model(model), training.mean / 2) for model in job.rewards)
    return tokens * total


def _forward(policy: Architecture, tokens: float) -> float:
    """Return the operations of one forward pass for one token in a text of `tokens` tokens."""
    return 2 * policy.active + 2 * policy.layers * policy.attention * tokens
