"""What a run says of its cost before its first job is done."""

import io
import json
import subprocess
import sys
from dataclasses import astuple

import pytest
from papers import GRAPH

from encore.forecast import left, plan
from encore.recipe.graph import Node
from encore.workflow import console


def nodes(recipe, scale):
    arms, seeds = GRAPH.recipes[recipe].selection(scale, "report", None)
    return GRAPH.grid(recipe, scale, arms, seeds)


def test_all_of_a_recipe_is_what_the_planner_says_of_it():
    made = plan.make(GRAPH, {"recipe": "dapo", "scale": "paper"})
    assert left.planned(GRAPH, nodes("dapo", "paper")).rows == made.rows
    assert f"{made.gpu_hours:,.0f} hours of one H800" in left.line(made, 1e18)


def test_what_does_not_fit_is_said():
    made = left.planned(GRAPH, nodes("r1", "paper"))
    line = left.line(made, 1e18)
    assert "NOT ENOUGH ROOM" not in line
    assert "NOT ENOUGH ROOM: 3 GB are free here" in left.line(made, 3e9)
    assert line.endswith("NOT ALL OF IT FITS: snakemake --cores 1 plan --config recipe=r1 scale=paper")


def test_one_line_of_what_is_left(tmp_path, monkeypatch):
    """Jobs whose product is there are not counted."""
    monkeypatch.chdir(tmp_path)
    all_nodes = nodes("r1_zero", "cpu")
    files = [tmp_path / node.sentinel for node in all_nodes]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
    for file in files[:-2]:
        file.touch()
    seen = []
    monkeypatch.setattr(console.subprocess, "Popen", lambda words, stdin: seen.append((words, stdin.read())))
    console.say_planned(all_nodes)
    [(words, given)] = seen
    assert [Node(*one) for one in json.loads(given)] == all_nodes[-2:]
    assert words == [sys.executable, "-m", "encore.forecast.left"]
    for file in files:
        file.touch()
    console.say_planned(all_nodes)
    assert len(seen) == 1  # nothing is left


def test_nothing_to_plan_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["left"])
    monkeypatch.setattr("sys.stdin", io.StringIO("[]"))
    for effect in ("end_with", "quiet_environment", "signal.signal", "os.nice"):  # on this process
        monkeypatch.setattr(f"encore.forecast.left.{effect}", lambda *args, **options: None)
    assert left.main() == 0
    assert capsys.readouterr().err == "not planned: no job is left\n"


@pytest.mark.slow
def test_the_command():
    given = json.dumps([astuple(node) for node in nodes("r1_zero", "cpu")[:2]])
    done = subprocess.run(
        [sys.executable, "-m", "encore.forecast.left"], input=given, text=True, capture_output=True
    )
    assert (done.returncode, done.stdout) == (0, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("planned: 2 jobs, ")
    assert line.endswith(" GB on disk")
