"""The lengths of prompts and completions in tokens, for worlds and data sets, and the engine that samples.

The lengths of a world are measured on documents of the kinds that the model has learnt to write.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from encore import worlds
from encore.errors import UserError
from encore.forecast.hardware import Assumptions
from encore.forecast.job import Generation
from encore.recipe.base import present
from encore.recipe.corpus import CorpusPart, Mixture
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds import GrpoStage, PretrainStage, SftStage
from encore.recipe.kinds.policy_gradient import PolicyGradientStage
from encore.recipe.kinds.rollout import RolloutStage
from encore.recipe.kinds.stage import Stage
from encore.recipe.machine import BackendArgs, Engine
from encore.recipe.task import Asked, EnvironmentTask, Task, WorldTask
from encore.worlds.text import length

LONGEST = 512  # tokens of a prompt, if no stage sets the longest
SERVED = 0.9  # share of a GPU's memory for an engine that has the GPU alone
DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2, "auto": 2}
AMPLIFIED = 3  # reinforcement multiplies a kind's share by r ** AMPLIFIED; r: share of its right documents
COUNTED = 256  # number of documents of a kind that are counted
QUESTIONS = 32  # number of a world's prompts that are measured if a published model is asked
CHARACTERS = 3.0  # characters per token of a prompt with numbers and marks of turns; SmolLM2 has 2.9
SHORT = 128  # tokens; answers fill the share FILLED of a cap of at most SHORT, which was set for them
FILLED = 0.7


@dataclass(frozen=True)
class Lengths:
    """The mean tokens of a prompt, and of a completion with its end."""

    prompt: float
    completion: float


@dataclass(frozen=True)
class Prompts:
    """The questions that a policy is asked, and their template."""

    task: Task
    template: str
    longest: int | None = None  # tokens; longer prompts are left out


@dataclass(frozen=True)
class _Kind:
    """The documents of one kind: their share of a corpus, their tokens, and the share of right ones."""

    weight: float
    prompt: float
    completions: tuple[int, ...]
    right: float


def drawn(
    graph: Graph,
    node: Node,
    asked: Sequence[Prompts],
    engine: Engine,
    completions: float,
    cap: int,
    assumed: Assumptions,
    group: int = 1,
) -> Generation:
    """Return the generation of `completions` answers to `asked`, of at most `cap` tokens, all drawn at once.

    `group` is the number of completions of a prompt; sampler lean reads the prompt once for all of them.
    """
    data, options = graph.inputs(node).get("data"), engine.backend_args or BackendArgs()
    lengths = _answers(graph, node, asked, cap) or (of_documents(graph, data) if data else None)
    longest = [prompts.longest for prompts in asked if prompts.longest]
    prompt = min([_measured(asked) or assumed.prompt, *longest])
    return Generation(
        completions=completions,
        rollout=completions,
        cap=cap,
        mean=lengths.completion if lengths else cap * (FILLED if cap <= SHORT else assumed.length),
        prompt=lengths.prompt if lengths else prompt,
        engine="vllm" if engine.backend == "vllm" else "hf",
        width=options.tensor_parallel_size or 1,
        share=options.gpu_memory_utilization or SERVED,
        bytes_a_weight=DTYPES[engine.dtype],
        longest_prompt=64 if lengths else max(longest, default=LONGEST),
        shared=group if engine.backend == "lean" else 1,
    )


def _measured(asked: Sequence[Prompts]) -> float | None:
    """Return the mean tokens of the prompts of worlds, estimated from their characters.

    None if there are no prompts, or if some are from a data set.
    """
    rng, characters = random.Random(0), []
    for prompts in asked:
        if isinstance(prompts.task, EnvironmentTask):  # to plan need not start an environment
            return None
        try:
            world = prompts.task.make_world()
        except UserError:  # an optional package is missing, which the stage itself reports
            world = None
        if world is None:
            return None
        problems = [world.problem(rng) for _ in range(QUESTIONS)]
        characters += [len(worlds.prompt(prompts.template, problem.question)) for problem in problems]
    return fmean(characters) / CHARACTERS if characters else None


def prompts_a_row(stage: GrpoStage, processes: int) -> float:
    """Return how many prompts are read for each completion of a micro-batch: 1 unless they are shared.

    A micro-batch is drawn from the whole rollout, so that it has few completions of most of its prompts.
    """
    if not stage.share_prompts:
        return 1.0
    rollout, rows = stage.completions(processes), stage.portion(processes).rows
    group = present(stage.args.num_generations)
    missed = max(1 - rows / rollout, 0.0) ** group  # probability that a micro-batch misses a prompt
    return rollout / group * (1 - missed) / rows


def asked_by(stage: Stage) -> list[Prompts]:
    """Return the questions of a stage: of its own task, or of its domains."""
    parts = [part for part in stage.parts.values() if isinstance(part, Asked) and part.task is not None]
    return [
        Prompts(part.questions, part.form.template, getattr(part, "longest_prompt", None)) for part in parts
    ]


def of_documents(graph: Graph, node: Node) -> Lengths | None:
    """Return the lengths of the documents that a stage learns from; None if no world wrote them."""
    stage, data = graph.stage(node), graph.inputs(node).get("data")
    if data and getattr(stage, "task", None) is None:
        return of_documents(graph, data)
    if isinstance(stage, PretrainStage | SftStage) and stage.corpus is not None:
        return of_corpus(stage, _published(graph, node))
    args = getattr(stage, "args", None)
    return _answers(graph, node, asked_by(stage), getattr(args, "max_completion_length", None) or LONGEST)


def _answers(graph: Graph, node: Node, asked: Sequence[Prompts], cap: int) -> Lengths | None:
    """Return the mean lengths of answers to tasks; None without tasks, or if a task's are unknown."""
    each = [of_samples(graph, node, prompts, cap) for prompts in asked]
    known = [lengths for lengths in each if lengths]
    if not each or len(known) < len(each):
        return None
    return Lengths(fmean(lengths.prompt for lengths in known), fmean(lengths.completion for lengths in known))


def of_samples(graph: Graph, node: Node, asked: Prompts, cap: int) -> Lengths | None:
    """Return the lengths of a policy's answers to the questions of a task.

    The policy is assumed to write each kind of document as often as its corpus does. If it was reinforced,
    kinds that are often right have larger shares. The result is None for a data set, and if no corpus of the
    world taught the policy, as with a published model.
    """
    if not isinstance(asked.task, WorldTask):
        return None
    learnt, reinforced = corpus_of(graph, node, asked.task.world)
    if not learnt:
        return None
    kinds = [
        (share * kind.weight, kind)
        for share, mixture in learnt
        for kind in _kinds(json.dumps([asked.task.said, asked.template, mixture]), _published(graph, node))
    ]
    if reinforced and any(kind.right for _, kind in kinds):  # replies in free form have no answer in tags
        kinds = [(weight * kind.right**AMPLIFIED, kind) for weight, kind in kinds]
    return _mean(
        [(weight, kind.prompt, fmean(min(n, cap) for n in kind.completions)) for weight, kind in kinds]
    )


def of_corpus(stage: PretrainStage | SftStage, published: bool = False) -> Lengths:
    """Return the lengths of the documents of a stage's corpus.

    `published`: whether a published model reads them, whose tokens are of several characters.
    """
    return _mean(
        [
            (part.share * kind.weight, kind.prompt, fmean(kind.completions))
            for part in _parts(stage)
            for kind in _kinds(json.dumps([part.task.said, part.template, part.mixture]), published)
        ]
    )


def _mean(weighted: list[tuple[float, float, float]]) -> Lengths:
    """Return the mean of triples (weight, tokens of the prompt, tokens of the completion)."""
    weights, prompts, completions = zip(*weighted, strict=True)
    return Lengths(fmean(prompts, weights), fmean(completions, weights))


def _parts(stage: PretrainStage | SftStage) -> list[CorpusPart]:
    """Return the parts of a corpus; the part of the stage's own task comes first."""
    corpus, task = present(stage.corpus), stage.task
    assert isinstance(task, WorldTask)
    also = corpus.also or ()
    left = 1 - sum(part.share for part in also)
    own_part = CorpusPart.model_construct(
        task=task, template=present(stage.template), mixture=present(corpus.mixture), share=left
    )
    return [own_part, *also]


def corpus_of(graph: Graph, node: Node, world: str) -> tuple[list[tuple[float, Mixture]], bool]:
    """Return (share, mixture) of each part that a world has in the corpus that the policy learnt last.

    The second value says whether the policy was reinforced since.
    """
    inputs, stage = graph.inputs(node), None if node.kind == "eval" else graph.stage(node)
    if isinstance(stage, PretrainStage | SftStage) and stage.corpus is not None:
        learnt = [(part.share, part.mixture) for part in _parts(stage) if part.task.world == world]
        if learnt:
            return learnt, False
    source = inputs.get("model" if node.kind == "eval" else "policy")
    if source is None:
        return [], False
    learnt, earlier = corpus_of(graph, source, world)
    return learnt, isinstance(stage, RolloutStage | PolicyGradientStage) or earlier


def _published(graph: Graph, node: Node) -> bool:
    """Return whether the policy of a job comes from a published model, not from one that was made here."""
    inputs = graph.inputs(node)
    source = inputs.get("model" if node.kind == "eval" else "policy")
    if source is not None:
        return _published(graph, source)
    return node.kind == "eval" or not isinstance(graph.stage(node), PretrainStage)


@cache
def _kinds(written: str, published: bool) -> tuple[_Kind, ...]:
    """Return the kinds of documents that `[task, template, mixture]`, given as JSON, describes.

    `published`: whether a published model reads them.
    """
    task, template, mixture = json.loads(written)
    world = worlds.make(task)
    return tuple(
        _kind(world, template, name, weight, dials, published)
        for name, weight, dials in zip(*worlds.mix(world, mixture), strict=True)
    )


def _kind(
    world: worlds.World, template: str, name: str, weight: float, dials: Mapping[str, float], published: bool
) -> _Kind:
    rng = random.Random(f"{world.name} {name}")

    def tokens(text: str) -> int:
        return round(len(text) / CHARACTERS) if published else length(world, text)

    prompts, completions, right = [], [], 0
    for _ in range(COUNTED):
        problem = world.problem(rng)
        document = world.document(problem, name, rng, **dials)
        prompts.append(tokens(worlds.prompt(template, problem.question) + problem.begun))
        completions.append(tokens(document.removeprefix(problem.begun)) + 1)
        right += f"<answer>{problem.answer}</answer>" in document  # verifying may take a sandbox
    return _Kind(weight, fmean(prompts), tuple(completions), right / COUNTED)
