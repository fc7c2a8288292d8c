"""The command `python -m encore.workflow.bring FOLDER`, which copies results that another run has made.

It joins the parts of a grid that several machines have made (`--config part=1/4`), or a colleague's results.
A result is copied if the recipes here would make the same (its lineage) and if it is as its job has left it
(its digests). Its provenance, log and weights are copied with it. Results that are already here stay. After
that the usual command makes the missing results and the report.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from encore import validity
from encore.errors import UserError
from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_all
from encore.runtime import digests, sentinel
from encore.runtime.lock import only_one
from encore.workflow import start

STAGES, EVALUATIONS = "results/*/*/*/seed*/*/metrics.json", "results/*/*/*/seed*/evals/*.json"


def bring(graph: Graph, other: Path) -> tuple[list[Path], list[str]]:
    """Copy the valid results from the folder `other` into the working folder.

    Returns the copied results, and a line with the reason for each result that could not be copied.
    """
    brought, left = [], []
    for result, node in _found(other):
        target = Path(node.sentinel)
        if target.exists() and validity.unlike(target, graph.lineage(node)) is None:
            continue
        if reason := _unfit(graph, node, result, other):
            left.append(f"{result}: {reason}; left there")
            continue
        _copy(result, target, other)
        brought.append(target)
    return brought, left


def _found(other: Path) -> Iterator[tuple[Path, Node]]:
    """Yield the results in a folder, each with the node that its path belongs to."""
    for kind, pattern in (("stage", STAGES), ("eval", EVALUATIONS)):
        for result in sorted(other.glob(pattern)):
            recipe, scale, arm, seed, place, file = result.relative_to(other).parts[1:]
            if seed.removeprefix("seed").isdecimal() and (kind == "eval") == (place == "evals"):
                name = file.removesuffix(".json") if kind == "eval" else place
                yield result, Node(recipe, scale, arm, int(seed.removeprefix("seed")), name, kind)


def _unfit(graph: Graph, node: Node, result: Path, other: Path) -> str | None:
    """Return why a result must not be copied; None if it may be copied."""
    if not graph.knows(node):
        return "no recipe here has its place"
    reason = validity.of_result(result, graph.lineage(node))
    return reason or (_without_weights(result, other) if node.kind == "stage" else None)


def _products(data: Mapping[str, Any]) -> list[Path]:
    """Return the folder of each product of a stage, relative to the run's folder."""
    return [Path(product["model"]) for product in sentinel.products(data)]


def _without_weights(metrics_json: Path, other: Path) -> str | None:
    """Return a phrase about a missing or changed model of a stage in the folder `other`, or None."""
    try:
        data = sentinel.read_sentinel(metrics_json)
    except (OSError, ValueError):
        return "it is not readable"
    for folder in _products(data):
        if folder.is_absolute() or ".." in folder.parts:
            return f"its model {folder} is not in the folder of the run"
    return validity.of_products(data, other)


def _copy(result: Path, target: Path, other: Path) -> None:
    """Copy a result's models, logs and files, and its record last, as a sign that all is there."""
    for folder in _products(sentinel.read_sentinel(result)) if target.name == "metrics.json" else []:
        partial = folder.with_name(f".{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(other / folder, partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.replace(folder)
    ends = [result, digests.listing(result), digests.record(result)]
    logs = (
        result.parent.glob("*.log")
        if target.name == "metrics.json"
        else result.parent.glob(f"{result.stem}.log")
    )
    listed = digests.listed(result) or dict.fromkeys(digests.files_of(result))
    for file in [*logs, *(file for file in listed if file not in ends), *ends]:
        if file.exists():
            to = target.parent / file.relative_to(result.parent)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, to)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; `arguments` defaults to the command line."""
    parser = argparse.ArgumentParser(description="Bring in the results of another folder.")
    parser.add_argument("folder", type=Path)
    other = parser.parse_args(arguments).folder
    try:
        if not (other / "results").is_dir():
            raise UserError(f"{other}: no folder results in it; expected the folder of a run")
        with only_one(start.LOCK, start.busy):
            brought, left = bring(Graph(load_all()), other)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for line in left:
        print(line, file=sys.stderr)
    print(f"{len(brought)} results brought from {other}, {len(left)} left there", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
