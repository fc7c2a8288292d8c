"""results/published/plan_checks.csv: runs whose cost is known, and what the planner says of them.

    python tests/encore/forecast/plan_checks.py

The runs of others are in published_runs.yaml, with GPU-hours; ours are the records, with the
operations and the hours that they took: of a processor or, in older records, of the clock.
"""

import csv
import io
from pathlib import Path
from typing import Any

import yaml

from analysis.numbers.recorded import of_earlier_world, title
from encore.forecast.hardware import GPUS, Assumptions, change, machine
from encore.forecast.plan import Estimate, of_job
from encore.forecast.work import of_node
from encore.recipe.graph import Graph, Node
from encore.recipe.layers import Layers
from encore.recipe.load import load_all
from encore.recipe.recipe import Recipe

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "results" / "published" / "plan_checks.csv"
RUNS = yaml.safe_load(Path(__file__).with_name("published_runs.yaml").read_text(encoding="utf-8"))
COLUMNS = ("run", "on", "unit", "published", "planned", "ratio", "within", "given", "why", "source")
FACTOR = 1.5  # within which a plan of GPU-hours is to be
SHARE = 0.3  # and of a recipe at scale cpu
BUSY = "cores shared with other jobs: the same stage took 112 s in one record and 410 s in another"
FASTER = "processor time, on another kind of processor than the one whose rates the planner has"
GIVEN_UP = "its policies give up their working (24 to 19 tokens); a plan expects more of it"
SHARED = (
    "the record counts a prompt with each of its 8 responses; the stage reads it once, as the plan has it"
)
OTHER = {
    "code": GIVEN_UP,
    "r1_zero-small": SHARED,
}  # why operations differ; of code by length/correct in curves.csv
RESUMED = "its PPO was resumed, and a record has the processor time of the last part alone"
HOURS = {"instructgpt-small": RESUMED}  # why hours differ, where it is another reason than most records'


# what a recipe names of a data set for stages of each kind
OF_DATA_SET = {
    "grpo": {"question": "question"},
    "ppo": {"question": "question"},
    "sft": {"prompt": "prompt", "completion": "completion"},
    "label": {"prompt": "prompt", "chosen": "chosen", "rejected": "rejected"},
}


def completed(stage: dict[str, Any]) -> dict[str, Any]:
    """The stage with what a recipe must say of its model and its data, and a plan does not read."""
    pinned = {"revision": "0" * 40}
    whole = {key: value for key, value in stage.items() if key != "assumed"}
    for key in ("model", "task"):
        if "hub" in whole.get(key, {}):
            whole[key] = pinned | whole[key]
    if "hub" in whole.get("task", {}):
        whole["task"] = OF_DATA_SET[stage["run"]] | whole["task"]
    return whole


def planned(run: dict[str, Any]) -> list[Estimate]:
    """The stages of a published run, planned as those of a recipe."""
    stages = {name: completed(stage) for name, stage in run["stages"].items()}
    about = {"schema": 2, "title": run["run"], "url": "https://example.org"}
    spec = {**about, "stages": stages, "scales": {"paper": {}}, "arms": {"base-recipe": {}}, "evals": {}}
    graph = Graph({"published": Recipe("published", Layers(spec))})
    _, gpu = machine(run["gpus"])
    found = []
    for name, stage in run["stages"].items():
        assumed = change(Assumptions(), {**run["assumed"], **stage.get("assumed", {})})
        job = of_node(graph, Node("published", "paper", "base-recipe", 0, name, "stage"), assumed)
        found.append(of_job(job, gpu, assumed))
    return found


def of_others() -> list[dict[str, Any]]:
    rows = []
    for run in RUNS:
        count = machine(run["gpus"])[0]
        published = run.get("gpu_hours") or run["hours"] * count
        total = sum(one.gpu_hours for one in planned(run))
        each = [f"{name} {stage['assumed']}" for name, stage in run["stages"].items() if "assumed" in stage]
        given = "; ".join([*(f"{key}={value:g}" for key, value in run["assumed"].items()), *each])
        rows.append(_row(run["run"], run["gpus"], "GPU-hours", published, total, given, run["source"]))
        rows[-1]["why"] = " ".join(run.get("note", "").split())
    return rows


def of_records() -> list[dict[str, Any]]:
    """Each record of a training: all stages and runs that its cost.csv counts."""
    graph, rows = Graph(load_all(ROOT / "recipes")), []
    for file in sorted((ROOT / "results" / "published").glob("*/cost.csv")):
        if of_earlier_world(file.parent, graph):
            continue  # of arms that the recipe may lack by now
        recipe, _, scale = file.parent.name.rpartition("-")
        measured, counted = [0.0, 0.0], [0.0, 0.0]
        costs = [cost for cost in csv.DictReader(file.open(encoding="utf-8")) if cost["stage"] != "all"]
        late = FASTER if all(cost.get("cpu_s") for cost in costs) else BUSY
        for cost in costs:
            of, _, stage = cost["stage"].rpartition("/")
            job = of_node(graph, Node(of or recipe, scale, cost["arm"], 0, stage, "stage"), Assumptions())
            found, runs = of_job(job, GPUS["H100"], Assumptions()), int(cost["runs"])
            measured = [measured[0] + float(cost["flops"]), measured[1] + _seconds(cost) / 3600]
            counted = [counted[0] + found.flops * runs, counted[1] + found.hours * runs]
        if not measured[0]:
            continue  # of tables, as bandit is: nothing is planned for them
        for place, unit in enumerate(("operations", "hours")):
            source = f"results/published/{file.parent.name}/cost.csv"
            row = _row(
                title(file.parent.name), "2 cores", unit, measured[place], counted[place], "", source, SHARE
            )
            if row["within"] == "no":
                run = row["run"]
                row["why"] = HOURS.get(run, late) if unit == "hours" else OTHER.get(run, "")
            rows.append(row)
    return rows


def _seconds(cost: dict[str, str]) -> float:
    return float(cost.get("cpu_s") or 0) or float(cost["wall_s"])


def _row(
    run: str,
    machines: str,
    unit: str,
    published: float,
    total: float,
    given: str,
    source: str,
    share: float | None = None,
) -> dict[str, Any]:
    ratio = total / published
    near = abs(ratio - 1) <= share if share else 1 / FACTOR <= ratio <= FACTOR
    return {
        "run": run,
        "on": machines,
        "unit": unit,
        "published": f"{published:.4g}",
        "planned": f"{total:.4g}",
        "ratio": f"{ratio:.2f}",
        "within": "yes" if near else "no",
        "given": given,
        "source": source,
    }


def text() -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows([*of_others(), *of_records()])
    return out.getvalue()


if __name__ == "__main__":
    TABLE.write_text(text(), encoding="utf-8")
