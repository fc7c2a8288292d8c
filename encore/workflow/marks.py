"""The marking of results that no longer hold, so that Snakemake makes them again.

When the workflow starts, a file, the marker, is written beside each such result, as a new input of its rule.
Snakemake would also repeat all jobs that depend on a repeated job. But a stage repeated with the same lineage
gives the same weights, so `waits_for` leaves such a stage out of the inputs of a node that is up to date. If
the weights differ after all, as they may on a GPU, the recorded digests show it at the next start.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import time_ns

from snakemake.io import local

from encore import validity
from encore.recipe.graph import Graph, Node
from encore.runtime import digests
from encore.workflow.outputs import EVAL_FILES, STAGE_FILES


def marker(result: str | Path) -> Path:
    """Return the path of the file that says why a result no longer holds.

    If the file exists, it is an input of the result's rule.
    """
    return Path(result).with_suffix(".stale")


def markers(result: str | Path) -> list[str]:
    """Return the result's marker as a list, for the inputs of a rule; [] if the result holds."""
    path = marker(result)
    return [local(str(path))] if path.exists() else []  # `local`: it is in no storage


def waits_for(graph: Graph, node: Node) -> dict[str, Node]:
    """Return role -> input of `node` that must exist before it.

    If the result of `node` is up to date, inputs that are only repeated, with the same lineage, are left out.
    """
    sources = graph.inputs(node)
    path = Path(node.sentinel)
    if not path.exists() or marker(path).exists() or validity.unlike(path, graph.lineage(node)):
        return sources
    return {role: source for role, source in sources.items() if not _is_repeated(graph, source)}


def _is_repeated(graph: Graph, node: Node) -> bool:
    """Return whether the node's result is to be made again, and with the same lineage as before."""
    path = Path(node.sentinel)
    unchanged = validity.unlike(path, graph.lineage(node)) is None
    return (not path.exists() or marker(path).exists()) and unchanged


def mark(
    graph: Graph,
    nodes: Sequence[Node],
    reports: Mapping[Path, str],
    later: Sequence[Node] = (),
    stored: bool = False,
) -> list[str]:
    """Write or remove the marker of each result; return a line for each result that will be made again.

    `reports`: file of a table or a look -> the hash of what it should be computed from. A page is made again
    if its tables are gone, as after a failed analysis; Snakemake alone would take the page to be up to date.
    `later`: nodes that later looks may ask for; they are marked, but no line is returned for them.
    `stored`: whether products that are not here lie in a bucket, where they are not looked at.
    """
    memory = validity.Memory.load()
    reasons: dict[Path, str | None] = {}
    for node in filter(_is_begun, (*nodes, *later)):
        path = Path(node.sentinel)
        reasons[path] = _displaced(path, _made(node)) or validity.of_node(graph, node, memory.digest, stored)
        if path.exists() and reasons[path] is None:
            _settle(graph, node)
    for table, made_from in reports.items():
        page = table.parent.with_suffix(".html")
        reasons[table] = _displaced(table) or (
            validity.of_result(table, made_from, memory.digest) if table.exists() else None
        )
        reasons[page] = _displaced(page) or (_of_page(page, table, memory.digest) if page.exists() else None)
    for path, reason in reasons.items():
        if path.exists() and reason is None and not digests.listing(path).exists():
            # the result was made before there were lists, or its list was deleted
            digests.note(path, memory.digest)
    memory.save()
    for path, reason in reasons.items():
        if reason is None:
            marker(path).unlink(missing_ok=True)
        else:
            # Snakemake compares small inputs by content, so each marker differs from all earlier markers
            marker(path).write_text(f"{reason}\n{time_ns()}\n", encoding="utf-8")
    silent = {node.sentinel for node in later} - {node.sentinel for node in nodes}
    told = {path: reason for path, reason in reasons.items() if reason and str(path) not in silent}
    return [f"{path}: {reason}; redoing it" for path, reason in told.items()]


def _is_begun(node: Node) -> bool:
    """Return whether the folder of a node's files exists; without it no file can be marked or displaced.

    Raises OSError if something else stands in the way of the folder.
    """
    try:
        os.stat(node.folder)
    except FileNotFoundError:
        return False
    return True


def _of_page(page: Path, table: Path, digest: validity.Digest) -> str | None:
    """Return why a page does not hold; None if it does."""
    return validity.changed(page, digest) if table.exists() else "its tables are gone"


def _displaced(result: Path, made: Iterable[Path] = ()) -> str | None:
    """Move aside folders that have the names of a result's files; return a phrase about it, or None."""
    try:
        listed = digests.listed(result) or {}
    except ValueError:
        listed = {}
    files = [result, *made, *listed, digests.record(result), digests.listing(result), marker(result)]
    folders = [path for path in dict.fromkeys(files) if path.is_dir()]
    for folder in folders:
        folder.rename(folder.with_name(f"{folder.name}.{time_ns()}.aside"))
    names = ", ".join(str(folder.relative_to(result.parent)) for folder in folders)
    return f"a folder stood in the place of {names}, now beside it (.aside)" if folders else None


def _made(node: Node) -> list[Path]:
    """Return the files that the node's rule makes."""
    patterns = STAGE_FILES if node.kind == "stage" else EVAL_FILES
    wildcards = vars(node) | {"stage": node.name, "checkpoint": node.name}
    return [Path(pattern.format(**wildcards)) for pattern in patterns.values()]


def _settle(graph: Graph, node: Node) -> None:
    """Set the mtimes of a valid node's files so that they are no older than the node's inputs.

    Snakemake compares mtimes, and in a copied folder they can be in any order.
    """
    made = [file for file in _made(node) if file.exists()]
    sources = [Path(source.sentinel) for source in graph.inputs(node).values()]
    newest = max((file.stat().st_mtime_ns for file in sources if file.exists()), default=0)
    for file in made:
        if file.stat().st_mtime_ns < newest:
            os.utime(file)
