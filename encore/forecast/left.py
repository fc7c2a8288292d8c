"""A plan of a run, printed as one line on stderr while the run's first job already runs.

    python -m encore.forecast.left [mine.yaml] < nodes.json

stdin has the nodes that are still to be made, as a JSON list of [recipe, scale, arm, seed, name, kind]. The
nodes that the user requested are last. mine.yaml is a recipe that is not in recipes/.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from encore.errors import UserError
from encore.forecast import plan
from encore.forecast.hardware import Assumptions
from encore.forecast.plan import Plan
from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_sound
from encore.runtime import files, suite
from encore.runtime.environment import quiet_environment
from encore.runtime.guard import end_with
from snakemake_logger_plugin_encore import PLANNED

DAY = 24.0  # hours in a day
DOES = {"stage": "train", "eval": "evaluate"}


def planned(graph: Graph, nodes: Sequence[Node]) -> Plan:
    """Return the plan of these nodes on the GPU that is named in the last node's recipe.

    Raises UserError without nodes.
    """
    if not nodes:
        raise UserError("no job is left")
    last = nodes[-1]
    gpu, assumed = plan.gpu_of(graph.recipes[last.recipe], last.scale), Assumptions()
    rows = plan.rows_of(graph, list(nodes), gpu, None, assumed)
    return Plan(last.recipe, last.scale, gpu, None, assumed, tuple(rows), len({node.seed for node in nodes}))


def line(made: Plan, free: float) -> str:
    """Return `planned: 31 jobs, 35 minutes one after another, 0.02 GB on disk`, and what does not fit.

    `free` is the free space of the disk in bytes.
    """
    count = sum(len(row.nodes) for row in made.rows)
    jobs = f"{count} job{'s' if count > 1 else ''}"
    work = f"{_time(made.hours)} one after another"
    if made.gpu_hours:
        work = f"{made.gpu_hours:,.0f} hours of one {made.gpu.name}, {work}"
    gigabytes = made.disk / 1e9
    disk = f"{gigabytes:,.0f}" if gigabytes > 10 else f"{gigabytes:.2g}"
    said = f"planned: {jobs}, {work}, {disk} GB on disk"
    if made.disk > free:
        said += f"; NOT ENOUGH ROOM: {free / 1e9:,.2g} GB are free here"
    if not made.fits:
        asked = f"recipe={made.recipe} scale={made.scale}"
        said += f"; NOT ALL OF IT FITS: {suite.snakemake()} --cores 1 plan --config {asked}"
    return said


def _seconds(made: Plan) -> dict[str, float]:
    """Return the message that the workflow gives each job -> the job's planned seconds."""
    return {
        f"{DOES[node.kind]} {node.recipe}/{node.scale}/{node.arm}/seed{node.seed}/{node.name}": (
            row.estimate.hours * 3600
        )
        for row in made.rows
        for node in row.nodes
    }


def _time(hours: float) -> str:
    if hours < 2:
        return f"{max(round(hours * 60), 1)} minutes"
    return f"{hours:.3g} hours" if hours < 2 * DAY else f"{hours / DAY:.3g} days"


def main() -> int:
    if sys.platform == "linux":
        end_with(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    quiet_environment(names_hub=True)
    os.nice(10)  # lets the run's first job go first
    user_file = Path(sys.argv[1]) if sys.argv[1:] else None
    nodes = [Node(*fields) for fields in json.load(sys.stdin)]
    try:
        made = planned(Graph(load_sound(user_file=user_file)[0]), nodes)
        PLANNED.parent.mkdir(exist_ok=True)
        files.note(PLANNED, _seconds(made))
        print(line(made, shutil.disk_usage(".").free), file=sys.stderr)
    except UserError as error:  # the job with this mistake reports it too
        print(f"not planned: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
