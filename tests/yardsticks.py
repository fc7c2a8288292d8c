"""Yardsticks of a change that must change no result: write them before the change, compare them after it.

    python -m tests.yardsticks write FOLDER      # on the commit before
    python -m tests.yardsticks compare FOLDER    # on the commit after; exit status 1 if something differs

FOLDER holds four files. `graph.json` has the lineage and the owner of every node of all recipes, scales and
arms. `plans.json` has the planner's table of every recipe and scale. `verdicts.json` has the verdict of every
claim of the committed records, judged anew. `runs.json` has the digests of the weights and of the curves of
ten short CPU runs. The base models of these runs are trained once and kept in FOLDER/bases.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from encore.errors import UserError
from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_all

REPOSITORY = Path(__file__).parents[1]
# one run for each objective and kind of stage: (recipe, arm)
RUNS = (
    ("r1_zero", "base-recipe"),
    ("dapo", "base-recipe"),
    ("dr_grpo", "base-recipe"),
    ("gspo", "gspo-token"),
    ("objectives", "cispo"),
    ("objectives", "rloo"),
    ("objectives", "deepseekmath"),
    ("tldr", "base-recipe"),
    ("dpo", "base-recipe"),
    ("tools", "base-recipe"),
)
SHORT = 12  # optimizer steps of a stage of these runs
OUTPUTS = ("curve.csv", "ratios.csv", "completions.jsonl")


def graph_of(recipes: Graph) -> dict[str, list[str]]:
    """The lineage and the owner's folder of every node of seed 0, by the node's own folder."""
    nodes = (node for name in recipes.recipes for node in _nodes(recipes, name))
    return {_place(node): [recipes.lineage(node), _place(recipes.owner(node))] for node in nodes}


def _nodes(recipes: Graph, name: str) -> Iterator[Node]:
    recipe = recipes.recipes[name]
    for scale in recipe.scales:
        for arm in recipe.arms(scale):
            for stage in recipe.stages(scale, arm):
                yield Node(name, scale, arm, 0, stage, "stage")
            for evaluation in recipe.evaluations(scale, arm):
                yield Node(name, scale, arm, 0, evaluation, "eval")


def _place(node: Node) -> str:
    return f"{node.folder}/{node.name}"


def verdicts(recipes: Graph) -> dict[str, str]:
    """The tables of verdicts of every record, judged anew from the record's numbers, as CSV."""
    from analysis.numbers.recorded import current  # imported here: analysis loads pandas and matplotlib
    from analysis.publish import RECORDS, judged_anew

    return {
        f"{record.name}/{table.name}": table.numbers.to_csv(index=False)
        for record in current(REPOSITORY / RECORDS, recipes)
        for table in judged_anew(record, recipes)
    }


def plans(recipes: Graph) -> dict[str, str]:
    """The planner's table of every recipe at every scale, or its error."""
    from encore.forecast import plan, table

    tables = {}
    for name, recipe in recipes.recipes.items():
        for scale in recipe.scales:
            try:
                tables[f"{name}/{scale}"] = table.text(plan.make(recipes, {"recipe": name, "scale": scale}))
            except UserError as error:
                tables[f"{name}/{scale}"] = f"error: {error}"
    return tables


def runs(recipes: Graph, bases: Path) -> dict[str, str]:
    """The SHA-256 digest of each output and weight file of the short runs."""
    digests = {}
    with tempfile.TemporaryDirectory() as folder:
        for recipe, arm in RUNS:
            for node in recipes.grid(recipe, "cpu", [arm], [0]):
                if node.kind == "stage":
                    pretrained = node.recipe == "tiny_lm"
                    root = bases if pretrained else Path(folder)
                    _run(recipes, node, root, bases, short=not pretrained)
                    if not pretrained:
                        digests |= {f"{node.folder}/{name}": sha for name, sha in _digests(node, root)}
    return digests


def _run(recipes: Graph, node: Node, root: Path, bases: Path, short: bool) -> None:
    """Run one stage below `root`, unless its result is there."""
    out = root / node.sentinel
    if out.exists():
        return
    config = recipes.config(node)
    if short and config.get("args", {}).keys() & {"max_steps", "num_train_epochs"}:
        steps = min(config["args"].get("max_steps", SHORT), SHORT)
        config = {**config, "args": {**config["args"], "max_steps": steps, "save_steps": SHORT}}
    inputs = [
        f"--input={role}={(bases if source.recipe == 'tiny_lm' else root) / source.sentinel}"
        for role, source in recipes.inputs(node).items()
    ]
    command = [
        *(sys.executable, "-m", "encore.stages", config["run"], "--config", json.dumps(config)),
        *("--seed", str(node.seed), "--name", node.folder.removeprefix("results/")),
        *("--checkpoints", str(root / "checkpoints" / node.folder), "--out", str(out), *inputs),
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    print(node.folder, flush=True)
    done = subprocess.run(command, cwd=REPOSITORY, env=os.environ | threads, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{node.folder}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def _digests(node: Node, root: Path) -> Iterator[tuple[str, str]]:
    """(name, digest) of a stage's weights and other outputs."""
    final = root / "checkpoints" / node.folder / "final"
    outputs = [root / node.folder / name for name in OUTPUTS]
    for path in [*sorted(final.rglob("*")), *outputs]:
        if path.is_file():
            yield path.name, hashlib.sha256(path.read_bytes()).hexdigest()


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """One line for each key whose value differs, or that only one of the two has."""
    keys = sorted(before.keys() | after.keys())
    return [
        f"{key}: {before.get(key)!r} -> {after.get(key)!r}"
        for key in keys
        if before.get(key) != after.get(key)
    ]


def main() -> int:
    """Write or compare the yardsticks that the command line asks for."""
    parser = argparse.ArgumentParser(description="Write or compare the yardsticks.", allow_abbrev=False)
    parser.add_argument("action", choices=["write", "compare"])
    parser.add_argument("folder", type=Path)
    measures: dict[str, Callable[[Graph, Path], dict[str, Any]]] = {
        "graph": lambda recipes, _: graph_of(recipes),
        "verdicts": lambda recipes, _: verdicts(recipes),
        "plans": lambda recipes, _: plans(recipes),
        "runs": runs,
    }
    parser.add_argument("--only", choices=[*measures], action="append", help="of these alone")
    options = parser.parse_args()
    bases = options.folder / "bases"
    bases.mkdir(parents=True, exist_ok=True)
    recipes, status = Graph(load_all(REPOSITORY / "recipes")), 0
    for name in options.only or measures:
        values, path = measures[name](recipes, bases.resolve()), options.folder / f"{name}.json"
        if options.action == "write":
            path.write_text(json.dumps(values, indent=1, sort_keys=True), encoding="utf-8")
            print(f"{path}: {len(values)} values")
            continue
        lines = differences(json.loads(path.read_text(encoding="utf-8")), values)
        print(f"{name}: {len(values)} values, {len(lines)} differ", *lines[:40], sep="\n  ")
        status |= bool(lines)
    return status


if __name__ == "__main__":
    sys.exit(main())
