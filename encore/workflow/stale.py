"""Results on disk that no longer hold: found when the workflow starts, and made again, they alone.

Snakemake repeats whatever follows a job that it repeats. But a stage repeated with the same lineage gives the
same weights, so `waits_for` leaves the edge from such a stage to a node that is up to date out of the graph.
Should the weights differ after all, as they may on a GPU, the recorded digests show it at the next start.

Beside each result its rule notes what it was made from (`record`) and the digests of its files (`sums`):
Snakemake's own notes in .snakemake may be lost, or left behind on another machine.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from time import time_ns
from typing import Any, NoReturn, TextIO

from encore.errors import UserError
from encore.recipe.graph import Graph, Node
from encore.runtime import sentinel
from encore.runtime.lock import only_one
from encore.workflow import orphans, seen, sums
from encore.workflow.outputs import EVAL_FILES, STAGE_FILES
from encore.workflow.sums import record

LOCK = Path(".snakemake/encore.lock")


def marker(result: str | Path) -> Path:
    """The file that says why a result no longer holds; its rule has it as an input where it is there."""
    return Path(result).with_suffix(".stale")


def markers(result: str | Path) -> list[str]:
    """The marker as inputs of the rule: none where the result holds."""
    path = marker(result)
    return [str(path)] if path.exists() else []


def judged(graph: Graph, recipe: str, nodes: Iterable[Node], *rest: Any) -> str:
    """A hash of what is judged: the recipe's text, the lineages of these nodes, and the rest."""
    content = [graph.recipes[recipe].spec, [graph.lineage(node) for node in nodes], *rest]
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def outdated(graph: Graph, node: Node) -> str | None:
    """Why the node's result is not the recipe's any more; None where it is, or where there is none."""
    path = Path(node.sentinel)
    return unlike(path, graph.lineage(node)) if path.exists() else None


def waits_for(graph: Graph, node: Node) -> dict[str, Node]:
    """role -> the nodes that must be there before `node` is made; none that is only repeated."""
    sources = graph.inputs(node)
    path = Path(node.sentinel)
    if not path.exists() or marker(path).exists() or outdated(graph, node):
        return sources
    return {role: source for role, source in sources.items() if not _repeated(graph, source)}


def unlike(result: Path, made_from: str) -> str | None:
    """Why the result is not known to be made from this; None where its record says it is."""
    path = record(result)
    if not path.exists():
        return "there is no record of what it was made from"
    same = path.read_text(encoding="utf-8", errors="replace").strip() == made_from
    return None if same else "it was made from other settings"


def _repeated(graph: Graph, node: Node) -> bool:
    """Whether the node is to be made once more, from what it was made from before."""
    path = Path(node.sentinel)
    unchanged = unlike(path, graph.lineage(node)) is None
    return (not path.exists() or marker(path).exists()) and unchanged


def prepare(
    graph: Graph,
    nodes: Sequence[Node],
    reports: Mapping[Path, str],
    running: bool,
    later: Sequence[Node] = (),
) -> TextIO | None:
    """Mark what no longer holds, with a line for each on stderr; if jobs will run, return the held lock.

    Where another process holds the lock: UserError if jobs will run; a dry-run or a summary changes nothing.
    """
    try:
        lock = only_one(LOCK, busy)
    except UserError:
        if running:
            raise
        return None
    if running:
        orphans.end(Path.cwd())
    try:
        lines = mark(graph, nodes, reports, later)
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}; mend that and run the same command") from None
    for line in lines:
        print(line, file=sys.stderr)
    if running:
        return lock
    lock.close()
    return None


def mark(
    graph: Graph, nodes: Sequence[Node], reports: Mapping[Path, str], later: Sequence[Node] = ()
) -> list[str]:
    """Write or remove the marker of each result; a line for each that will be made again.

    `reports`: table of a report, or a look -> the hash of what it is to be judged from. A page whose tables
    are gone, as after an analysis that failed, is made again too: Snakemake alone takes a newer page to be up
    to date. `later`: nodes that jobs may yet ask for; nothing is said of them.
    """
    known = seen.read()
    reasons: dict[Path, str | None] = {}
    for node in (*nodes, *later):
        path = Path(node.sentinel)
        reasons[path] = _displaced(path, _made(node)) or _reason(graph, node, known.digest)
        if path.exists() and reasons[path] is None:
            _settle(graph, node)
    for path, judged in reports.items():
        page = path.parent.with_suffix(".html")
        reasons[path] = _displaced(path) or (_unlike(path, judged, known.digest) if path.exists() else None)
        reasons[page] = _displaced(page) or (_of_page(page, path, known.digest) if page.exists() else None)
    for path, reason in reasons.items():
        if path.exists() and reason is None and not sums.path(path).exists():
            sums.note(path, known.digest)  # made before there were lists, or its list was deleted
    known.save()
    for path, reason in reasons.items():
        if reason is None:
            marker(path).unlink(missing_ok=True)
        else:
            # Snakemake compares small inputs by content, so each marker is unlike those before it.
            marker(path).write_text(f"{reason}\n{time_ns()}\n", encoding="utf-8")
    silent = {Path(node.sentinel) for node in later} - {Path(node.sentinel) for node in nodes}
    told = {path: reason for path, reason in reasons.items() if reason and path not in silent}
    return [f"{path}: {reason}; redoing it" for path, reason in told.items()]


def _reason(graph: Graph, node: Node, of_file: Callable[[Path], str]) -> str | None:
    """Why a node's result does not hold; None where it does, or where there is none."""
    path = Path(node.sentinel)
    if not path.exists():
        return None
    reason = _unlike(path, graph.lineage(node), of_file)
    return reason or (sentinel.stale(path, of_file) if node.kind == "stage" else remeasure(graph, node))


def _unlike(result: Path, made_from: str, of_file: Callable[[Path], str]) -> str | None:
    """Why a result is not known to be what was made from this."""
    return unlike(result, made_from) or sums.changed(result, of_file)


def _of_page(page: Path, table: Path, of_file: Callable[[Path], str]) -> str | None:
    """Why a page does not hold."""
    return sums.changed(page, of_file) if table.exists() else "its tables are gone"


def _displaced(result: Path, made: Iterable[Path] = ()) -> str | None:
    """That a folder stood in the place of one of a result's files; it is moved aside."""
    try:
        listed = sums.listed(result) or {}
    except ValueError:
        listed = {}
    places = [result, *made, *listed, record(result), sums.path(result), marker(result)]
    folders = [path for path in dict.fromkeys(places) if path.is_dir()]
    for folder in folders:
        folder.rename(folder.with_name(f"{folder.name}.{time_ns()}.aside"))
    names = ", ".join(str(folder.relative_to(result.parent)) for folder in folders)
    return f"a folder stood in the place of {names}, now beside it (.aside)" if folders else None


def _made(node: Node) -> list[Path]:
    """The files that the node's rule makes."""
    patterns = STAGE_FILES if node.kind == "stage" else EVAL_FILES
    wildcards = vars(node) | {"stage": node.name, "checkpoint": node.name}
    return [Path(one.format(**wildcards)) for one in patterns.values()]


def _settle(graph: Graph, node: Node) -> None:
    """Make the files of a node that holds no older than what it was made from.

    Snakemake goes by these times, and a copy of a folder has them in any order.
    """
    made = [file for file in _made(node) if file.exists()]
    sources = [Path(source.sentinel) for source in graph.inputs(node).values()]
    newest = max((file.stat().st_mtime_ns for file in sources if file.exists()), default=0)
    for file in made:
        if file.stat().st_mtime_ns < newest:
            os.utime(file)


def remeasure(graph: Graph, node: Node) -> str | None:
    """Why an evaluation is to be made again: a model it was made with has another digest now."""
    sources = graph.inputs(node)
    if not sources:
        return None
    try:
        done = json.loads(Path(node.sentinel).read_text(encoding="utf-8"))
        measured = {"model": done["digest"]} | done.get("inputs", {})
    except (ValueError, KeyError, TypeError):
        return "it is not readable"
    for role, source in sources.items():
        try:
            step = graph.measured(node)[1] if role == "model" else None
            now = sentinel.model_at(sentinel.read(Path(source.sentinel)), step)["digest"]
        except (OSError, ValueError, UserError):
            continue  # redone or not there: nothing to compare with
        if measured.get(role) != now:
            return "its checkpoint has changed" if role == "model" else f"its {role} model has changed"
    return None


def busy(holder: str) -> NoReturn:
    raise UserError(f"another snakemake (process {holder}) runs in this folder; wait for it")
