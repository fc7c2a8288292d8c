"""Results on disk that no longer hold: found when the workflow starts, and made again, they alone.

Snakemake repeats whatever follows a job that it repeats. But a stage repeated with the same lineage gives the
same weights, so `waits_for` leaves the edge from such a stage to a node that is up to date out of the graph.
Should the weights differ after all, as they may on a GPU, the recorded digests show it at the next start.

Beside each result its rule notes what it was made from (`record`): Snakemake's own notes in .snakemake may be
lost, or left behind on another machine.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from time import time_ns
from typing import Any, NoReturn, TextIO

from recipes.errors import UserError
from recipes.runtime import files, sentinel
from recipes.runtime.lock import only_one
from recipes.spec.graph import Graph, Node
from recipes.workflow.outputs import EVAL_FILES, STAGE_FILES

CHECKED = Path(".snakemake/encore.checked.json")  # of the results found good: sizes and times of their files
LOCK = Path(".snakemake/encore.lock")


def marker(result: str | Path) -> Path:
    """The file that says why a result no longer holds; its rule has it as an input where it is there."""
    return Path(result).with_suffix(".stale")


def markers(result: str | Path) -> list[str]:
    """The marker as inputs of the rule: none where the result holds."""
    path = marker(result)
    return [str(path)] if path.exists() else []


def record(result: str | Path) -> Path:
    """Where the rule notes what it has made the result from: a node's lineage, or the hash of a report's."""
    return Path(result).with_suffix(".lineage")


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
    same = path.read_text(encoding="utf-8").strip() == made_from
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
        lock = only_one(LOCK, _busy)
    except UserError:
        if running:
            raise
        return None
    for line in mark(graph, nodes, reports, later):
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
    checked = _read_checked()
    reasons: dict[Path, str | None] = {}
    for node in (*nodes, *later):
        path = Path(node.sentinel)
        reasons[path] = outdated(graph, node)
        if path.exists() and reasons[path] is None:
            reasons[path] = damaged(path, checked) if node.kind == "stage" else remeasure(graph, node)
        if path.exists() and reasons[path] is None:
            _settle(graph, node)
    files.write_json(CHECKED, checked)
    for path, judged in reports.items():
        reasons[path] = unlike(path, judged) if path.exists() else None
        page = path.parent.with_suffix(".html")
        reasons[page] = "its tables are gone" if page.exists() and not path.exists() else None
    for path, reason in reasons.items():
        if reason is None:
            marker(path).unlink(missing_ok=True)
        else:
            # Snakemake compares small inputs by content, so each marker is unlike those before it.
            marker(path).write_text(f"{reason}\n{time_ns()}\n", encoding="utf-8")
    silent = {Path(node.sentinel) for node in later} - {Path(node.sentinel) for node in nodes}
    told = {path: reason for path, reason in reasons.items() if reason and path not in silent}
    return [f"{path}: {reason}; redoing it" for path, reason in told.items()]


def _settle(graph: Graph, node: Node) -> None:
    """Make the files of a node that holds no older than what it was made from.

    Snakemake goes by these times, and a copy of a folder has them in any order.
    """
    patterns = STAGE_FILES if node.kind == "stage" else EVAL_FILES
    wildcards = vars(node) | {"stage": node.name, "checkpoint": node.name}
    made = [file for file in (Path(one.format(**wildcards)) for one in patterns.values()) if file.exists()]
    sources = [Path(source.sentinel) for source in graph.inputs(node).values()]
    newest = max((file.stat().st_mtime_ns for file in sources if file.exists()), default=0)
    for file in made:
        if file.stat().st_mtime_ns < newest:
            os.utime(file)


def damaged(path: Path, checked: dict[str, dict]) -> str | None:
    """`sentinel.stale`, not called where its files have the sizes and times with which it last said None."""
    stats = _stats(path)
    if stats and checked.get(str(path)) == stats:
        return None
    reason = sentinel.stale(path)
    checked.pop(str(path), None)
    if reason is None:
        checked[str(path)] = stats
    return reason


def _stats(path: Path) -> dict[str, list[int]]:
    """File -> [bytes, ns] of a stage's metrics.json, of its models and of the upstream metrics.json."""
    try:
        data = sentinel.read(path)
    except (OSError, ValueError):
        return {}
    paths = [path, *map(Path, data.get("upstream", {}).values())]
    for model in (data, *data.get("steps", {}).values()):
        paths += Path(model["model"]).rglob("*")
    stats = {str(file): file.stat() for file in paths if file.is_file()}
    return {file: [stat.st_size, stat.st_mtime_ns] for file, stat in stats.items()}


def _read_checked() -> dict[str, dict]:
    try:
        checked = json.loads(CHECKED.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return checked if isinstance(checked, dict) else {}


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


def _busy(holder: str) -> NoReturn:
    raise UserError(f"another snakemake (process {holder}) runs in this folder; wait for it")
