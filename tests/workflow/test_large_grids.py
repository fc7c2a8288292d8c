"""What planning a grid costs grows with its jobs, and no faster."""

import csv
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from papers import RECIPES

from encore.forecast import plan
from encore.recipe import graph
from encore.recipe.graph import Graph

ROOT = Path(__file__).parents[2]
MOST = 4.0  # milliseconds of processor time for each further job; measured: 1.4


@pytest.fixture
def calls(monkeypatch) -> Counter[str]:
    """How often a config was pinned and a job estimated."""
    counts: Counter[str] = Counter()

    def counted(module, name):
        function = getattr(module, name)

        def call(*arguments):
            counts[name] += 1
            return function(*arguments)

        monkeypatch.setattr(module, name, call)

    counted(graph, "pinned")
    counted(plan, "of_node")
    return counts


@pytest.mark.parametrize("recipe", ["dpo", "iterative"])
def test_what_all_seeds_share_is_worked_out_once(recipe, calls):
    counts, jobs = [], []
    for seeds in (2, 8):
        calls.clear()
        made = plan.make(Graph(RECIPES), {"recipe": recipe, "seeds": seeds})
        jobs.append(sum(len(row.nodes) for row in made.rows))
        counts.append(dict(calls))
    assert jobs[1] == 4 * jobs[0]
    assert counts[1] == counts[0]
    assert counts[0]["of_node"] == jobs[0] / 2


@pytest.mark.slow
def test_a_further_job_takes_milliseconds(tmp_path):
    """A hundred jobs, and a thousand of the same recipe: what starting takes is in both."""
    command = [sys.executable, "tests/benchmarks/plan_speed.py", "--out", str(tmp_path / "speed.csv")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, "--grids", "dpo:4", "dpo:40"], check=True, cwd=ROOT, env=environment)
    with (tmp_path / "speed.csv").open(encoding="utf-8") as file:
        seconds = {
            int(row["jobs"]): float(row["value"]) for row in csv.DictReader(file) if row["metric"] == "cpu_s"
        }
    (few, less), (many, more) = seconds.items()
    assert (few, many) == (100, 1000)
    assert 1000 * (more - less) / (many - few) < MOST
