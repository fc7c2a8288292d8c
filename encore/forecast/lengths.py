"""How long prompts and completions are, of worlds and of data sets, and the engine that draws them.

The texts of a world are counted on documents of the kinds that a model has learnt to write.
"""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any

from encore import worlds
from encore.forecast.hardware import Assumptions
from encore.forecast.job import Generation
from encore.recipe.graph import Graph, Node
from encore.worlds.text import length

LONGEST = 512  # tokens of a prompt, where no stage says how long the longest may be
SERVED = 0.9  # and of a GPU that an engine has for itself
DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2, "auto": 2}
REINFORCED = ("grpo", "ppo", "policy_gradient")
AMPLIFIED = 3  # power of the share that is right: what reinforcement has made of the kinds in the records
COUNTED = 256  # documents of a kind


@dataclass(frozen=True)
class Lengths:
    """The mean tokens of a prompt and of a completion with its end."""

    prompt: float
    completion: float


@dataclass(frozen=True)
class _Kind:
    """Documents of one kind: their share of a corpus, tokens, and the share of them that is right."""

    weight: float
    prompt: float
    completions: tuple[int, ...]
    right: float


def drawn(
    graph: Graph, node: Node, config: Mapping[str, Any], completions: float, cap: int, assumed: Assumptions
) -> Generation:
    """Return completions drawn all at once, by the engine of an evaluation or of a stage that keeps them."""
    data, engine = graph.inputs(node).get("data"), config.get("backend_args", {})
    lengths = _answers(graph, node, config, cap) or (of_documents(graph, data) if data else None)
    backend = "vllm" if config.get("backend") == "vllm" else "hf"
    longest = [one["longest_prompt"] for one in (config, *_domains(config)) if "longest_prompt" in one]
    prompt = min(assumed.prompt, *longest, assumed.prompt)
    return Generation(
        completions=completions,
        rollout=completions,
        cap=cap,
        mean=lengths.completion if lengths else cap * assumed.length,
        prompt=lengths.prompt if lengths else prompt,
        engine=backend,
        width=engine.get("tensor_parallel_size", 1),
        share=engine.get("gpu_memory_utilization", SERVED),
        bytes_a_weight=DTYPES.get(config.get("dtype", "float32"), 4),
        longest_prompt=64 if lengths else max(longest, default=LONGEST),
    )


def of_documents(graph: Graph, node: Node) -> Lengths | None:
    """Return the lengths of what a stage learns from or compares; None if they are not a world's."""
    config, data = graph.config(node), graph.inputs(node).get("data")
    if data and "task" not in config:
        return of_documents(graph, data)
    if "corpus" in config:
        return of_corpus(config)
    return _answers(graph, node, config, config.get("args", {}).get("max_completion_length", LONGEST))


def _answers(graph: Graph, node: Node, config: Mapping[str, Any], cap: int) -> Lengths | None:
    """Return the mean lengths of answers to a task or to domains; None unless all are of worlds."""
    asked = [one for one in (config, *_domains(config)) if "task" in one]
    found = [of_samples(graph, node, one, cap) if "world" in one["task"] else None for one in asked]
    known = [one for one in found if one]
    if not found or len(known) < len(found):
        return None
    return Lengths(fmean(one.prompt for one in known), fmean(one.completion for one in known))


def _domains(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*config.get("domains", {}).values()]


def of_samples(graph: Graph, node: Node, config: Mapping[str, Any], cap: int) -> Lengths | None:
    """Return the lengths of what the policy of a stage or evaluation answers to `{task, template}`.

    The kinds of documents have their shares of the corpus, which reinforcement has moved to kinds that are
    often right. None if the policy comes from no corpus of that world, as a published model does.
    """
    task = config["task"]
    learnt, reinforced = corpus_of(graph, node, task["world"])
    if not learnt:
        return None
    kinds = [
        (share * kind.weight, kind)
        for share, mixture in learnt
        for kind in _kinds(json.dumps([task, config["template"], mixture]))
    ]
    if reinforced and any(kind.right for _, kind in kinds):  # replies in free form tag no answer
        kinds = [(weight * kind.right**AMPLIFIED, kind) for weight, kind in kinds]
    return _mean(
        [(weight, kind.prompt, fmean(min(n, cap) for n in kind.completions)) for weight, kind in kinds]
    )


def of_corpus(config: Mapping[str, Any]) -> Lengths:
    """Return the lengths of the documents of `{task, template, corpus}`."""
    return _mean(
        [
            (share * kind.weight, kind.prompt, fmean(kind.completions))
            for share, *part in _parts(config)
            for kind in _kinds(json.dumps(part))
        ]
    )


def _mean(weighted: list[tuple[float, float, float]]) -> Lengths:
    """Return the mean of triples (weight, tokens of the prompt, tokens of the completion)."""
    weights, prompts, completions = zip(*weighted, strict=True)
    return Lengths(fmean(prompts, weights), fmean(completions, weights))


def _parts(config: Mapping[str, Any]) -> Iterator[tuple[float, Any, str, Any]]:
    """Yield share, task, template and mixture of each part of a corpus."""
    corpus = config["corpus"]
    also = corpus.get("also", [])
    yield 1 - sum(part["share"] for part in also), config["task"], config["template"], corpus["mixture"]
    for part in also:
        yield part["share"], part["task"], part["template"], part["mixture"]


def corpus_of(graph: Graph, node: Node, world: str) -> tuple[list[tuple[float, Any]], bool]:
    """Return (share, mixture) of a world as the policy learnt it last, and if it was reinforced since."""
    inputs, config = graph.inputs(node), {} if node.kind == "eval" else graph.config(node)
    if config.get("run") in ("pretrain", "sft") and "corpus" in config:
        found = [(share, mixture) for share, task, _, mixture in _parts(config) if task["world"] == world]
        if found:
            return found, False
    source = inputs.get("model" if node.kind == "eval" else "policy")
    if source is None:
        return [], False
    learnt, earlier = corpus_of(graph, source, world)
    return learnt, config.get("run") in REINFORCED or earlier


@cache
def _kinds(written: str) -> tuple[_Kind, ...]:
    """Return the kinds of documents of `[task, template, mixture]`, given as JSON."""
    task, template, mixture = json.loads(written)
    world = worlds.make(task)
    return tuple(
        _kind(world, template, name, weight, dials)
        for name, weight, dials in zip(*worlds.mix(world, mixture), strict=True)
    )


def _kind(world: worlds.World, template: str, name: str, weight: float, dials: Mapping[str, float]) -> _Kind:
    rng = random.Random(f"{world.name} {name}")
    prompts, completions, right = [], [], 0
    for _ in range(COUNTED):
        problem = world.problem(rng)
        document = world.document(problem, name, rng, **dials)
        prompts.append(length(world, worlds.prompt(template, problem.question) + problem.begun))
        completions.append(length(world, document.removeprefix(problem.begun)) + 1)
        right += f"<answer>{problem.answer}</answer>" in document  # to verify may take a sandbox
    return _Kind(weight, fmean(prompts), tuple(completions), right / COUNTED)
