"""`--config seeds=auto`: what the looks on disk leave to be run. Real runs are in test_looks_run.py."""

from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

import pytest

from encore.recipe.graph import Graph
from encore.recipe.layers import Layers
from encore.recipe.load import load_all
from encore.recipe.looks import Look, path
from encore.recipe.recipe import Recipe
from encore.runtime import digests, files
from encore.workflow import looks, marks, targets
from encore.workflow.jobs import Jobs
from encore.workflow.outputs import Report

AUTO = targets.Choice("cpu", None, auto=True)
REPORT = Report("demo", "cpu", "report")
EVERY = ["base-recipe", "hot", "other-base"]


def put(graph: Graph, look: int, arms: list[str], taken: list[Look]) -> list[Look]:
    """Leave a look on disk as its rule does; all looks up to it."""
    found = Look(look, {}, [], arms)
    file = path("demo", "cpu", look)
    files.write_json(file, asdict(found))
    digests.record(file).write_text(looks.judged(graph, "demo", "cpu", taken))
    return [*taken, found]


def planned(graph: Graph, *, report: Report = REPORT) -> dict[str, int]:
    """arm -> how many seeds of its last stage are planned, by the looks on disk."""
    seeds = defaultdict(set)
    for node in Jobs(graph, AUTO).nodes([report]):
        if (node.recipe, node.name) == ("demo", "rl"):
            seeds[node.arm].add(node.seed)
    assert all(own == set(range(len(own))) for own in seeds.values())  # counted from the first
    return {arm: len(own) for arm, own in seeds.items()}


@pytest.fixture
def folder(demo, project, monkeypatch):
    monkeypatch.chdir(project.folder)
    return project


def test_each_look_plans_the_seeds_of_the_arms_that_are_still_needed(folder, demo):
    assert planned(demo) == dict.fromkeys(EVERY, 8)
    taken = put(demo, 8, ["base-recipe", "hot"], [])
    assert planned(demo) == {"base-recipe": 16, "hot": 16, "other-base": 8}
    taken = put(demo, 16, ["base-recipe"], taken)
    assert planned(demo) == {"base-recipe": 32, "hot": 16, "other-base": 8}
    put(demo, 32, ["base-recipe"], taken)  # not decided, and there is no further look
    assert planned(demo) == {"base-recipe": 32, "hot": 16, "other-base": 8}


def test_when_all_is_decided_nothing_more_is_planned(folder, demo):
    put(demo, 8, [], [])
    assert planned(demo) == dict.fromkeys(EVERY, 8)
    assert set(Jobs(demo, AUTO).judgements([REPORT])) == {REPORT.table, path("demo", "cpu", 8)}


def test_a_look_of_an_edited_recipe_and_those_after_it_are_taken_again(folder, demo):
    put(demo, 16, ["hot"], put(demo, 8, ["hot"], []))
    assert planned(demo)["hot"] == 32
    jobs = Jobs(demo, AUTO)
    assert marks.mark(demo, [], jobs.judgements([REPORT])) == []
    folder.edit("demo", "margin: 0.1", "margin: 0.2")
    edited = Graph(load_all(folder.folder / "recipes"))
    assert planned(edited) == dict.fromkeys(EVERY, 8)
    again = marks.mark(edited, [], Jobs(edited, AUTO).judgements([REPORT]))
    assert again == [
        f"results/demo/cpu/looks/{look}.json: it was made from other settings; redoing it" for look in (8, 16)
    ]


def test_a_lost_look_is_taken_again_and_those_after_it(folder, demo):
    put(demo, 16, [], put(demo, 8, ["hot"], []))
    path("demo", "cpu", 8).unlink()
    assert planned(demo) == dict.fromkeys(EVERY, 8)
    (line,) = marks.mark(demo, [], Jobs(demo, AUTO).judgements([REPORT]))
    assert line.startswith("results/demo/cpu/looks/16.json: ")


@pytest.mark.fault("a look is cut short or has no record", "looks of seeds=auto", "taken again")
def test_a_look_without_its_record_or_cut_short_does_not_hold(folder, demo):
    put(demo, 8, ["hot"], [])
    path("demo", "cpu", 8).write_text("{")
    assert planned(demo)["hot"] == 8
    assert marks.mark(demo, [], Jobs(demo, AUTO).judgements([REPORT]))
    put(demo, 8, ["hot"], [])
    digests.record(path("demo", "cpu", 8)).unlink()
    assert planned(demo)["hot"] == 8


def test_a_report_is_judged_from_the_nodes_it_shows_and_the_looks(folder, demo):
    def judged() -> str:
        return Jobs(demo, AUTO).judgements([REPORT])[REPORT.table]

    hashes = [judged()]
    put(demo, 8, ["hot"], [])
    hashes.append(judged())
    put(demo, 8, [], [])  # the nodes of the first, but decided
    hashes.append(judged())
    hashes.append(Jobs(demo, targets.Choice("cpu", 8)).judgements([REPORT])[REPORT.table])
    assert len(set(hashes)) == 4


def test_seeds_are_counted_from_the_first_of_the_recipe(folder, demo):
    changed = Recipe("demo", Layers(demo.recipes["demo"].layers.content | {"first_seed": 100}))
    graph = Graph({**demo.recipes, "demo": changed})
    put(graph, 8, ["hot"], [])
    seeds = {node.seed for node in Jobs(graph, AUTO).nodes([REPORT]) if node.arm == "hot"}
    assert seeds == set(range(100, 116))


def test_the_quickstart_and_a_recipe_without_claims_have_their_usual_seeds(folder, demo):
    assert planned(demo, report=Report("demo", "cpu", "quickstart")) == {"base-recipe": 1}
    silent = Graph(
        {**demo.recipes, "demo": Recipe("demo", Layers(demo.recipes["demo"].layers.content | {"claims": {}}))}
    )
    assert planned(silent) == dict.fromkeys(EVERY, 2)
    elsewhere = {
        name: {**claim, "scales": ["paper"]}
        for name, claim in demo.recipes["demo"].layers.content["claims"].items()
    }
    other = Graph(
        {
            **demo.recipes,
            "demo": Recipe("demo", Layers(demo.recipes["demo"].layers.content | {"claims": elsewhere})),
        }
    )
    assert planned(other) == dict.fromkeys(EVERY, 2)


def test_a_stale_result_that_a_later_look_may_ask_for_is_marked_and_nothing_said(folder, demo):
    jobs = Jobs(demo, AUTO)
    (late,) = targets.target_of(demo, AUTO, "results/demo/cpu/hot/seed31/evals/after.json", "demo")
    result = Path(late.sentinel)
    result.parent.mkdir(parents=True)
    result.write_text("{}")
    digests.record(result).write_text("another lineage")
    assert late not in jobs.nodes([REPORT])
    assert marks.mark(demo, jobs.nodes([REPORT]), {}, jobs.later([REPORT])) == []
    assert marks.markers(result)
    assert Jobs(demo, targets.Choice("cpu", None)).later([REPORT]) == []


def test_any_seed_of_a_look_may_be_asked_for(demo):
    target = "results/demo/cpu/hot/seed31/rl/metrics.json"
    (node,) = targets.target_of(demo, AUTO, target, "demo")
    assert node.seed == 31
