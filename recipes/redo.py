"""Results on disk that no longer hold: found when the workflow starts, redone alone.

Snakemake redoes whatever follows a job that it redoes.  But a stage repeated with the same lineage gives the
same weights, so the edge to a node that is itself up to date is left out of the graph (`waits_for`).  If the
weights differ after all, as on a GPU they may, the recorded digests show it at the next start.
"""

import fcntl
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import time_ns
from typing import TextIO

from recipes import graph
from recipes.errors import UserError
from recipes.recipe import Recipe
from recipes.stages import sentinel


def marker(node: graph.Node) -> Path:
    return Path(graph.sentinel(node)).with_suffix(".stale")


def record(node: graph.Node) -> Path:
    """Where the rule notes the lineage it has made."""
    return Path(graph.sentinel(node)).with_suffix(".lineage")


def waits_for(recipes: Mapping[str, Recipe], node: graph.Node) -> dict[str, graph.Node]:
    """role -> the nodes that must be there before `node` is made; none that is only repeated."""
    sources = graph.inputs(recipes, node)
    done = Path(graph.sentinel(node)).exists() and not marker(node).exists()
    if not done or not _made(recipes, node):
        return sources
    return {role: source for role, source in sources.items() if not _repeated(recipes, source)}


def _made(recipes: Mapping[str, Recipe], node: graph.Node) -> bool:
    """Whether the node was last made as the recipe now has it."""
    path = record(node)
    return path.exists() and path.read_text(encoding="utf-8").strip() == graph.lineage(recipes, node)


def _repeated(recipes: Mapping[str, Recipe], node: graph.Node) -> bool:
    """Whether the node is to be made once more, just as it was."""
    lost = not Path(graph.sentinel(node)).exists()
    return (lost or marker(node).exists()) and _made(recipes, node)


def prepare(recipes: Mapping[str, Recipe], nodes: Iterable[graph.Node], running: bool) -> TextIO | None:
    """Mark what no longer holds, a line each on stderr; when `running`, hold the folder by the returned file.

    Raises UserError if another process holds it; who only looks (a dry-run, a summary) then changes nothing.
    """
    try:
        held = only_one()
    except UserError:
        if running:
            raise
        return None
    for line in mark(recipes, nodes):
        print(line, file=sys.stderr)
    if running:
        return held
    held.close()
    return None


def mark(recipes: Mapping[str, Recipe], nodes: Iterable[graph.Node]) -> list[str]:
    """Write or remove the marker of each node that has a result; one line for each that will be redone."""
    lines = []
    for node in nodes:
        done = Path(graph.sentinel(node)).exists() and _made(recipes, node)
        reason = _stale(recipes, node) if done else None
        if reason is None:
            marker(node).unlink(missing_ok=True)
            continue
        lines.append(f"{graph.sentinel(node)}: {reason}; redoing it")
        # Snakemake compares small inputs by content, so each marker is unlike those before it.
        marker(node).write_text(f"{reason}\n{time_ns()}\n", encoding="utf-8")
    return lines


def _stale(recipes: Mapping[str, Recipe], node: graph.Node) -> str | None:
    path = Path(graph.sentinel(node))
    if node.kind == "stage":
        return sentinel.stale(path)
    source = graph.inputs(recipes, node).get("model")
    if source is None:
        return None
    try:
        measured = json.loads(path.read_text(encoding="utf-8"))["digest"]
    except (ValueError, KeyError, TypeError):
        return "it is not readable"
    try:
        now = sentinel.read(Path(graph.sentinel(source)))["digest"]
    except (OSError, ValueError):
        return None  # redone or not there: nothing to compare with
    return None if measured == now else "its checkpoint has changed"


def only_one(folder: Path = Path(".snakemake")) -> TextIO:
    """Hold the folder for this process; the kernel lets go when it ends, however it ends.

    Keep the returned file open.  Raises UserError if another process holds the folder.
    """
    folder.mkdir(exist_ok=True)
    file = (folder / "encore.lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise UserError(f"another snakemake (process {holder}) runs in this folder; wait for it") from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file
