"""The choice `--config seeds=auto`, with which each look decides what is run next (encore.recipe.looks)."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from encore import validity
from encore.recipe.graph import Graph, Node
from encore.recipe.looks import LOOKS, Look, following, path, read_look, seeds_of


def nodes(graph: Graph, recipe: str, scale: str, taken: Sequence[Look]) -> list[Node]:
    """Return the nodes that the look after the looks `taken` judges, with upstream nodes first.

    After the last look they are the nodes of the report.
    """
    known = graph.recipes[recipe]
    counts = seeds_of(known.arms(scale), taken)
    seeds = {arm: known.selection(scale, "report", count)[1] for arm, count in counts.items()}
    return graph.ragged(recipe, scale, seeds)


def judged(graph: Graph, recipe: str, scale: str, taken: Sequence[Look]) -> str:
    """Return a hash of what the look after the looks `taken`, or else the report, is computed from."""
    return validity.judged(
        graph, recipe, nodes(graph, recipe, scale, taken), [asdict(look) for look in taken]
    )


def holding(graph: Graph, recipe: str, scale: str) -> list[Look]:
    """Return the valid looks on disk. A look is valid if it and all earlier looks fit the present recipe."""
    taken: list[Look] = []
    while look := following(taken):
        file = path(recipe, scale, look)
        holds = validity.of_result(file, judged(graph, recipe, scale, taken)) is None
        if not holds or not (valid_look := read_look(file)):
            break
        taken.append(valid_look)
    return taken


def judgements(graph: Graph, recipe: str, scale: str) -> dict[Path, str]:
    """Return file -> hash of what the look judges, for each valid look and each look that may follow.

    What a later look judges is not known before the earlier looks are valid, so its hash is empty.
    """
    taken = holding(graph, recipe, scale)
    hashes = [judged(graph, recipe, scale, taken[:i]) for i in range(len(taken))]
    unknown = LOOKS[len(taken) :] if following(taken) else ()
    looks = dict(zip(LOOKS, hashes, strict=False)) | dict.fromkeys(unknown, "")
    return {path(recipe, scale, look): made_from for look, made_from in looks.items()}


def ask(checkpoints: Any, recipe: str, scale: str, before: int | None = None) -> list[Look]:
    """Return the looks that come before the look at `before` seeds, or all, from Snakemake's `checkpoints`.

    Raises Snakemake's IncompleteCheckpointException for the first missing look; Snakemake then takes the look
    and calls this function again.
    """
    taken: list[Look] = []
    while (look := following(taken)) and look != before:
        job = checkpoints.look.get(recipe=recipe, scale=scale, look=str(look))
        judged_look = read_look(Path(job.output[0]))
        assert judged_look, f"{job.output[0]}: not the file of a look"
        taken.append(judged_look)
    return taken
