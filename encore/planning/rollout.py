"""How long generation takes: a rollout followed token by token, from the memory bandwidth of its GPUs.

Each step of decoding reads the weights once and the keys and values of every sequence that still runs
(roofline; Pope et al. 2022, arXiv 2211.05102, §2). As completions end, fewer are left to share the reading of
the weights, and the longest one decides when the rollout is over: lengths are taken to be exponential, cut at
the cap, with the mean that is assumed.
"""

import math

from encore.planning.architecture import Architecture
from encore.planning.hardware import GPU, NODE, Assumptions
from encore.planning.job import Generation
from encore.planning.memory import ENGINE

STEP = 4e-3  # seconds of a step of decoding by vLLM beside what is read: scheduling and launches
SEQUENCE = 16e-6  # … and for each sequence in it: sampling and bookkeeping
HOP = 20e-6  # of one exchange between the GPUs of a node; a layer has two
FAR = 80e-6  # … of several nodes
EAGER = 1.0e-3  # of a layer, in a step of transformers' generate: launches, one by one
MOST = 1024  # sequences that an engine runs at once at most
POINTS = 256  # of the integral over a rollout


def seconds(policy: Architecture, generation: Generation, gpus: int, gpu: GPU, assumed: Assumptions) -> float:
    """Of all completions, on `gpus`, each copy of the model on `width` of them."""
    copies = max(gpus // generation.width, 1)
    if assumed.rate and generation.completions:
        return generation.completions * generation.mean / (assumed.rate * gpus)
    reading = generation.completions * generation.prompt + generation.read
    read = 2 * policy.active * reading / (gpus * gpu.flops * assumed.prefill)
    if not generation.completions:
        return read
    each = max(generation.rollout / copies, 1.0)  # sequences of one copy
    most = _at_once(policy, generation, gpu)
    if each <= most:
        one = _drained(policy, generation, each, gpu, assumed)
    else:  # as one ends the next begins, until the last `most` are left
        context = generation.prompt + generation.mean
        steady = _step(policy, generation, most, context, gpu, assumed) * generation.mean / most
        one = (each - most) * steady + _drained(policy, generation, most, gpu, assumed)
    return read + one * generation.completions / generation.rollout


def rate(policy: Architecture, generation: Generation, gpus: int, gpu: GPU, assumed: Assumptions) -> float:
    """Tokens that one GPU generates in a second, in the mean over a rollout."""
    took = seconds(policy, generation, gpus, gpu, assumed)
    return generation.completions * generation.mean / took / gpus if took else 0.0


def scale_of(mean: float, cap: int) -> float:
    """theta of lengths min(X, cap), X exponential with mean theta, so that their mean is `mean`."""
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
    """Seconds until so many sequences that began together have all ended."""
    theta = scale_of(generation.mean, generation.cap)
    longest = min(generation.cap, theta * (math.log(sequences) + 0.577))  # expected, of so many
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
    """Seconds of one step of decoding, in which each sequence gets a token."""
    size, width = generation.bytes_a_weight, generation.width
    read = size * (_touched(policy, sequences) + sequences * context * policy.layers * policy.cached)
    memory = read / (width * gpu.bandwidth * assumed.mbu)
    computed = 2 * policy.active * sequences / (width * gpu.flops * assumed.prefill)
    if generation.engine == "hf":
        return max(memory, computed) + EAGER * policy.layers
    hops = 0.0 if width == 1 else 2 * policy.layers * (HOP if width <= NODE else FAR)
    return max(memory, computed) + STEP + SEQUENCE * sequences + hops


def _touched(policy: Architecture, sequences: float) -> float:
    """Parameters that a step reads: of the experts those that some sequence visits."""
    if not policy.sparse:
        return policy.active
    shared = policy.parameters - policy.embedding
    idle = shared - policy.active
    missed = (1 - policy.visited / policy.experts) ** sequences
    return policy.active + idle * (1 - missed)


def _at_once(policy: Architecture, generation: Generation, gpu: GPU) -> float:
    """Sequences that the memory of one copy has room for, at their mean length."""
    if generation.engine == "hf":
        return math.inf  # TRL generates a whole rollout at once
    free = generation.share * gpu.memory * generation.width
    free -= 2 * policy.parameters + ENGINE * generation.width
    each = 2 * policy.layers * policy.cached * (generation.prompt + generation.mean)
    return min(max(free / each, 1.0), MOST)
