"""The table of results/published/plan_checks.csv: runs whose cost is known, and what the planner says of them."""

import sys
from pathlib import Path
from typing import Any

import yaml

from recipes.planning.estimate import Estimate, of_job
from recipes.planning.hardware import Assumptions, change, machine
from recipes.planning.jobs import of_node
from recipes.spec.graph import Graph, Node
from recipes.spec.recipe import Recipe

RUNS = yaml.safe_load(Path(__file__).with_name("published_runs.yaml").read_text(encoding="utf-8"))


def planned(run: dict[str, Any]) -> list[Estimate]:
    """The stages of a published run, planned as those of a recipe."""
    stages = {name: {k: v for k, v in one.items() if k != "assumed"} for name, one in run["stages"].items()}
    spec = {"stages": stages, "scales": {"paper": {}}, "arms": {"its": {}}, "evals": {}}
    graph = Graph({"published": Recipe("published", spec)})
    _, gpu = machine(run["gpus"])
    found = []
    for name, stage in run["stages"].items():
        assumed = change(Assumptions(), {**run["assumed"], **stage.get("assumed", {})})
        job = of_node(graph, Node("published", "paper", "its", 0, name, "stage"), assumed)
        found.append(of_job(job, gpu, assumed))
    return found


def published(run: dict[str, Any]) -> float:
    return run.get("gpu_hours") or run["hours"] * machine(run["gpus"])[0]


if __name__ == "__main__":
    for run in RUNS:
        found = planned(run)
        total = sum(one.gpu_hours for one in found)
        print(f"{run['run'][:50]:50} {published(run):10.2f} {total:10.2f} {total / published(run):6.2f}",
              [f"{one.rate:.0f} tok/s, gen {one.generated:.2e} tr {one.trained:.2e} {one.lacks}" for one in found], file=sys.stdout)
