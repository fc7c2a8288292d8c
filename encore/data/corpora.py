"""Corpora: documents that a stage learns to continue, on one task or, with `corpus.also`, on several.

task: {world: preferences}
template: "<user>{question}<assistant>"
corpus:
  documents: 80_000                      # of all tasks together
  mixture: {good: 0.2, curt: 0.8}
  also:
    - {task: {world: sort}, template: "<user>{question}<assistant>", mixture: {direct: 1}, share: 0.2}
"""

from collections.abc import Mapping
from typing import Any

from encore import worlds


def worlds_of(config: Mapping[str, Any]) -> list[worlds.World]:
    """The worlds of `{task, corpus}`, that of `task` first."""
    also = config["corpus"].get("also", [])
    return [worlds.make(part["task"]) for part in ({"task": config["task"]}, *also)]


def documents(config: Mapping[str, Any], seed: int) -> list[tuple[str, str]]:
    """(prompt, completion) of each document of `{task, template, corpus}`, those of `task` first.

    Every question is a train question. Shares are rounded to numbers of documents.
    """
    corpus = config["corpus"]
    also = corpus.get("also", [])
    counts = [round(part["share"] * corpus["documents"]) for part in also]
    own = {"task": config["task"], "template": config["template"], "mixture": corpus["mixture"]}
    pairs = []
    for part, count in zip([own, *also], [corpus["documents"] - sum(counts), *counts], strict=True):
        world = worlds.make(part["task"])
        pairs += worlds.corpus(world, part["mixture"], count, seed, part["template"])
    return pairs
