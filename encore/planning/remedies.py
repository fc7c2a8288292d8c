"""The smallest change by which a job that does not fit would."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

from encore.planning import memory
from encore.planning.estimate import lacks
from encore.planning.hardware import GPU, GPUS
from encore.planning.job import Job
from encore.planning.known import of_model
from encore.runtime.gpus import SHARDED

RANK = 16
MOST = 1024  # GPUs that are thought of
LARGER = ("H200", "B200")
WITH_LORA = ("sft", "dpo", "grpo")

# what is changed (no two of one kind together) -> the words for it, and the job so changed
Change = tuple[str, str, Callable[[Job], Job]]


def smallest(job: Job, gpu: GPU, many: int = 3) -> list[str]:
    """The changes by which the job fits, fewest and cheapest first; one where nothing else helps: none."""
    offered = list(_changes(job))
    for count in (1, 2, 3):
        found: dict[tuple[str, ...], str] = {}
        for some in combinations(offered, count):
            kinds = tuple(kind for kind, _, _ in some)
            if len({*kinds}) < count or kinds in found:  # of a kind the smallest
                continue
            changed = job
            for _, _, apply in some:
                changed = apply(changed)
            if fits(changed, gpu):
                found[kinds] = " and ".join(words for _, words, _ in some)
        if found:
            return list(found.values())[:many]
    larger = [name for name in LARGER if GPUS[name].memory > gpu.memory and fits(job, GPUS[name])]
    return [f"a GPU of {GPUS[name].memory / 2**30:.0f} GiB ({name})" for name in larger]


def fits(job: Job, gpu: GPU) -> bool:
    if job.policy is None or not job.gpus:
        return True
    return not lacks(job, of_model(job.policy), memory.of_trainer(job, gpu), gpu)


def _changes(job: Job) -> Iterator[Change]:
    training, generation = job.training, job.generation
    if training and not training.checkpointing:
        yield "checkpointing", "gradient_checkpointing: true", _trained(checkpointing=True)
    if training and training.rows > 2:
        yield "rows", "per_device_train_batch_size: 1", _trained(rows=1)
    if training and not job.shard and job.kind in SHARDED and job.gpus > 1:
        yield "shard", "shard: fsdp", lambda one: replace(one, shard=True)
    if training and not training.lora and job.kind in WITH_LORA:
        yield "lora", f"lora of rank {RANK}", _trained(lora=RANK)
    if generation and generation.engine == "colocate" and not generation.sleeps:
        yield "sleep", "vllm_enable_sleep_mode: true", _asleep
    if generation and generation.engine in ("colocate", "vllm"):
        yield from _wider(job)
    if training and job.kind in SHARDED:
        yield from _more(job)
    if generation and generation.cap >= 2048 and training:
        yield from _shorter(job)


def _trained(**fields: object) -> Callable[[Job], Job]:
    def apply(job: Job) -> Job:
        assert job.training is not None
        return replace(job, training=replace(job.training, **fields))  # type: ignore[arg-type]

    return apply


def _asleep(job: Job) -> Job:
    assert job.generation is not None
    return replace(job, generation=replace(job.generation, sleeps=True))


def _wider(job: Job) -> Iterator[Change]:
    """An engine on more GPUs, which hold its weights together."""
    assert job.generation is not None
    for width in (2, 4, 8):  # GPUs of one machine
        alone = job.generation.engine == "vllm"
        if width > job.generation.width and (alone or width <= job.gpus):
            generation = replace(job.generation, width=width)

            def apply(one: Job, generation=generation, alone=alone, width=width) -> Job:
                return replace(one, generation=generation, gpus=width if alone else one.gpus)

            yield "width", f"vLLM's tensor_parallel_size: {width}", apply


def _more(job: Job) -> Iterator[Change]:
    assert job.training is not None
    gpus = 2 * job.gpus
    while gpus <= MOST and job.training.batch % gpus == 0:

        def apply(one: Job, gpus=gpus) -> Job:
            return replace(one, gpus=gpus, shard=True)

        yield "gpus", f"{gpus} GPUs with shard: fsdp", apply
        gpus *= 2


def _shorter(job: Job) -> Iterator[Change]:
    assert job.generation is not None
    assert job.training is not None
    for part in (2, 4, 8):
        longest = job.generation.longest or job.generation.cap
        cap = longest // part

        def apply(one: Job, cap=cap, cut=longest - cap) -> Job:
            assert one.training is not None
            assert one.generation is not None
            training = replace(one.training, longest=one.training.longest - cut)
            mean = min(one.generation.mean, cap)
            generation = replace(one.generation, cap=min(one.generation.cap, cap), longest=cap, mean=mean)
            return replace(one, training=training, generation=generation)

        yield "cap", f"max_completion_length: {cap}", apply
