"""`--config seeds=auto`: what is run follows from the looks that were taken (encore.recipe.looks)."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from encore import validity
from encore.recipe.graph import Graph, Node
from encore.recipe.looks import LOOKS, Look, following, path, read, seeds_of


def nodes(graph: Graph, recipe: str, scale: str, taken: Sequence[Look]) -> list[Node]:
    """What the look after those taken judges, upstream first; after the last, what the report shows."""
    known = graph.recipes[recipe]
    counts = seeds_of(known.arms(scale), taken)
    seeds = {arm: known.selection(scale, "report", count)[1] for arm, count in counts.items()}
    return graph.ragged(recipe, scale, seeds)


def judged(graph: Graph, recipe: str, scale: str, taken: Sequence[Look]) -> str:
    """The hash of what the look after those taken, or after the last the report, is judged from."""
    return validity.judged(
        graph, recipe, nodes(graph, recipe, scale, taken), [asdict(look) for look in taken]
    )


def holding(graph: Graph, recipe: str, scale: str) -> list[Look]:
    """The looks on disk that hold: each is of the recipe as it is, and so are those before it."""
    taken: list[Look] = []
    while look := following(taken):
        file = path(recipe, scale, look)
        holds = validity.of_result(file, judged(graph, recipe, scale, taken)) is None
        if not holds or not (found := read(file)):
            break
        taken.append(found)
    return taken


def judgements(graph: Graph, recipe: str, scale: str) -> dict[Path, str]:
    """File of each look that holds or may yet be taken -> the hash of what it is judged from.

    Of a look after one that does not hold nothing is known: its hash is empty, like no record.
    """
    taken = holding(graph, recipe, scale)
    hashes = [judged(graph, recipe, scale, taken[:i]) for i in range(len(taken))]
    unknown = LOOKS[len(taken) :] if following(taken) else ()
    looks = dict(zip(LOOKS, hashes, strict=False)) | dict.fromkeys(unknown, "")
    return {path(recipe, scale, look): made_from for look, made_from in looks.items()}


def ask(checkpoints: Any, recipe: str, scale: str, before: int | None = None) -> list[Look]:
    """The looks before that of `before` seeds, or all of them, from Snakemake's `checkpoints`.

    Raises Snakemake's IncompleteCheckpointException for the first that is yet to be taken, by which Snakemake
    takes it and asks again.
    """
    taken: list[Look] = []
    while (look := following(taken)) and look != before:
        job = checkpoints.look.get(recipe=recipe, scale=scale, look=str(look))
        found = read(Path(job.output[0]))
        assert found, f"{job.output[0]}: not the file of a look"
        taken.append(found)
    return taken
