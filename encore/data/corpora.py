"""Corpora: documents that a stage learns to continue, on one task or, with `corpus.also`, on several.

task: {world: preferences}
template: "<user>{question}<assistant>"
corpus:
  documents: 80_000                      # of all tasks together
  mixture: {good: 0.2, curt: 0.8}
  also:
    - {task: {world: sort}, template: "<user>{question}<assistant>", mixture: {direct: 1}, share: 0.2}
"""

from encore import worlds
from encore.recipe.base import present
from encore.recipe.corpus import Corpus
from encore.recipe.task import WorldTask


def worlds_of(task: WorldTask, corpus: Corpus) -> list[worlds.World]:
    """Return the worlds of a corpus, the world of `task` first."""
    return [part.make_world() for part in (task, *(part.task for part in corpus.also or ()))]


def documents(
    task: WorldTask, template: str, corpus: Corpus, seed: int, count: int | None = None
) -> list[tuple[str, str]]:
    """Return (prompt, completion) of each of `count` documents; the documents of `task` come first.

    `count` is by default `corpus.documents`. Questions are of split train, except in a part with `leaked`.
    Shares are rounded to whole documents.
    """
    total, also = present(count or corpus.documents), corpus.also or ()
    counts = [round(part.share * total) for part in also]
    first = worlds.corpus(task.make_world(), present(corpus.mixture), total - sum(counts), seed, template)
    further = [
        worlds.corpus(
            part.task.make_world(), part.mixture, count, seed, part.template, part.leaked, part.attempts
        )
        for part, count in zip(also, counts, strict=True)
    ]
    return [pair for pairs in (first, *further) for pair in pairs]
