"""How long prompts and completions are, of worlds and of data sets, and the engine that draws them."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from encore.planning import world_texts
from encore.planning.hardware import Assumptions
from encore.planning.job import Generation
from encore.planning.world_texts import Lengths
from encore.recipe.graph import Graph, Node

LONGEST = 512  # tokens of a prompt, where no stage says how long the longest may be
SERVED = 0.9  # and of a GPU that an engine has for itself
DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2, "auto": 2}


def drawn(
    graph: Graph, node: Node, config: Mapping[str, Any], completions: float, cap: int, assumed: Assumptions
) -> Generation:
    """Completions drawn all at once, by the engine of an evaluation or of a stage that keeps them."""
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
    """Of what a stage learns from or compares; None where a model brought its own alphabet along."""
    config, data = graph.config(node), graph.inputs(node).get("data")
    if data and "task" not in config:
        return of_documents(graph, data)
    if "corpus" in config:
        return world_texts.of_corpus(config)
    return _answers(graph, node, config, config.get("args", {}).get("max_completion_length", LONGEST))


def _answers(graph: Graph, node: Node, config: Mapping[str, Any], cap: int) -> Lengths | None:
    """Of a policy's answers to a task or to domains, in the mean; None unless all are of worlds."""
    asked = [one for one in (config, *_domains(config)) if "task" in one]
    found = [
        world_texts.of_samples(graph, node, one, cap) if "world" in one["task"] else None for one in asked
    ]
    known = [one for one in found if one]
    if not found or len(known) < len(found):
        return None
    return Lengths(fmean(one.prompt for one in known), fmean(one.completion for one in known))


def _domains(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*config.get("domains", {}).values()]
