"""A trial before a run is paid for: `python -m encore.forecast preflight --recipe r1_zero --scale gpu`.

On the machine of the run, every stage of one arm takes two optimizer steps by its ordinary command, with the
true model, data and settings. If an earlier stage has not been run yet, its product after two steps stands
in. Learning stages then take two steps on their longest rows, with completions that run to the cap, and each
evaluation has a few items. All of it is in a separate folder, which is removed.

It prints one line for each check: ok, warn, or FAIL with what to do. Then it prints the hours and the disk
that the run will take, by the measured steps. The same is in preflight.json. Exit status: 0 the run may
start, 1 a check failed, 2 a mistake in the command.
"""

import argparse
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from encore.errors import UserError
from encore.forecast import findings
from encore.recipe.chosen import first_node
from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_sound, own_file
from encore.runtime import files, provenance
from encore.runtime.environment import few_collections, names_hub, quiet_environment
from encore.runtime.lock import only_one

FOLDER = Path("checkpoints/.preflight")  # on the same disk that the run will fill


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m encore.forecast preflight",
        description="Try a run before it is paid for.",
        allow_abbrev=False,
    )
    parser.add_argument("--recipe", required=True)
    parser.add_argument("--scale", required=True)
    parser.add_argument("--arm", help="default: the recipe's first")
    parser.add_argument("--seeds", type=int, help="how many the run will have; default: as the recipe says")
    parser.add_argument("--out", type=Path, help="default: results/RECIPE/SCALE/preflight.json")
    return parser.parse_args(arguments)


def preflight(graph: Graph, arm: Node, seeds: int | None, folder: Path, run: Any = None) -> dict[str, Any]:
    """Try the arm in `folder`, print the findings, and return the content of preflight.json.

    `run` runs a job; by default each job is a separate process.
    """
    recipe = graph.recipes[arm.recipe]
    _, all_seeds = recipe.selection(arm.scale, "report", seeds)
    nodes = graph.grid(arm.recipe, arm.scale, [arm.arm], all_seeds[:1])
    every = graph.grid(arm.recipe, arm.scale, [arm.arm], all_seeds)
    quiet_environment(names_hub([graph.stage(node).said for node in nodes if node.kind == "stage"]))
    # imported here, because torch and the libraries of data read the environment, which is set only now
    from encore.forecast.survey import Survey

    counted = Counter(_job(node) for node in every)
    survey = Survey(graph, arm, nodes, counted, folder, _say)
    survey.run = run or survey.run
    survey.all()
    checks = [*survey.findings, findings.of_disk(survey.costs, shutil.disk_usage(folder).free / 2**20)]
    print(findings.text(checks, survey.costs), flush=True)
    about = {"recipe": arm.recipe, "scale": arm.scale, "arm": arm.arm, "seeds": len(all_seeds)}
    head, dirty = provenance.commit()
    about |= {"hardware": provenance.hardware(), "commit": head, "dirty": dirty, "at": provenance.now()}
    return findings.record(about, checks, survey.costs)


def _job(node: Node) -> tuple[str, ...]:
    return node.recipe, node.arm, node.kind, node.name


def _say(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status; `arguments` defaults to the command line."""
    few_collections()
    try:
        options = parse(arguments)
        user_file = own_file(vars(options))
        recipes, broken = load_sound(user_file=user_file)
        options.recipe = user_file.stem if user_file else options.recipe
        if options.recipe in broken:
            raise broken[options.recipe]
        graph = Graph(recipes)
        arm = first_node(graph, options.recipe, options.scale, options.arm, options.seeds)
        with only_one(FOLDER.with_suffix(".lock"), _refuse):
            shutil.rmtree(FOLDER, ignore_errors=True)  # removes the folder of a killed trial
            FOLDER.mkdir(parents=True)
            try:
                result = preflight(graph, arm, options.seeds, FOLDER)
            finally:
                shutil.rmtree(FOLDER, ignore_errors=True)
        out = options.out or Path(f"results/{arm.recipe}/{arm.scale}/preflight.json")
        files.write_json(out, result)
        # printed into the log of the job, because the console shows the end of the log
        for check in result["checks"]:
            if check["status"] == findings.FAIL:
                print("FAIL {stage}: {check}: {message}".format(**check), file=sys.stderr)
        print(f"{'the run may start' if result['ok'] else 'a check failed'}; see {out}", flush=True)
        return 0 if result["ok"] else 1
    except UserError as error:
        print(f"error: {error}", flush=True)
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; nothing of a preflight is kept", file=sys.stderr)
        return 130


def _refuse(holder: str) -> None:
    raise UserError(f"process {holder} is at a preflight in this folder; wait for it")
