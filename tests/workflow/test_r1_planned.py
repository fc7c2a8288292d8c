"""Recipe r1 planned by the Snakefile over finished results: what a changed cold start redoes; quickstarts."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from papers import GRAPH, RECIPES
from snakemake.settings.types import DAGSettings

from encore import validity
from encore.recipe.graph import RUN, Graph, Node
from encore.recipe.layers import Layers, merge
from encore.recipe.recipe import Recipe
from encore.runtime import digests
from encore.workflow.outputs import EVAL_FILES, STAGE_FILES

pytestmark = pytest.mark.slow

ARMS = RECIPES["r1"].arms("cpu")
GRID = GRAPH.grid("r1", "cpu", ARMS, [0])
Plan = Callable[..., set[str]]


@pytest.fixture
def plan(open_workflow, tmp_path, monkeypatch) -> Plan:
    """(targets, graph) -> sentinels of the stages and evaluations that a dry run of one seed would make."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        validity, "of_stage", lambda path, of_file, stored: None
    )  # there are no weights to look at
    monkeypatch.setattr(validity, "of_evaluation", lambda graph, node: None)
    monkeypatch.setattr("encore.workflow.targets.runs_jobs", lambda arguments: False)  # so no lock is kept

    def planned(targets: set[str], graph: Graph) -> set[str]:
        monkeypatch.setattr("encore.workflow.start.Graph", lambda recipes: graph)
        workflow = open_workflow(seeds=1)
        dag = workflow.dag(dag_settings=DAGSettings(targets=targets))
        dag.execute_workflow(executor="dryrun")
        jobs = workflow._workflow.dag.needrun_jobs(exclude_finished=False)
        return {str(job.output[0]) for job in jobs if job.rule.name in ("train", "evaluate")}

    return planned


def finish(nodes: Iterable[Node]) -> None:
    """Leave the files of each node as its rule does, but empty."""
    for node in nodes:
        run = RUN.format(**vars(node))
        made = STAGE_FILES if node.kind == "stage" else EVAL_FILES
        for pattern in made.values():
            path = Path(pattern.replace(RUN, run).format(stage=node.name, checkpoint=node.name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        digests.record(node.sentinel).write_text(GRAPH.lineage(node))


def changed(section: str, change: dict[str, Any]) -> Graph:
    """The graph of all recipes with another r1; `section`: where its stages are written, "cpu" or an arm."""
    spec = deepcopy(RECIPES["r1"].layers.content)
    at = spec["scales"]["cpu"] if section == "cpu" else spec["arms"][section]
    at["stages"] = merge(at["stages"], change)
    return Graph({**RECIPES, "r1": Recipe("r1", Layers(spec))})


def sentinels(arm: str, stages: str, checkpoints: str = "") -> set[str]:
    kinds = (("stage", stages), ("eval", checkpoints))
    return {Node("r1", "cpu", arm, 0, n, kind).sentinel for kind, names in kinds for n in names.split()}


COMES_OF_IT = {  # not zero, nor no-cold-start, nor the arms that have a cold start of their own
    "base-recipe": "cold_start reasoning rejection sft sample label reward_model scenarios preference",
    "no-language-reward": "reasoning",
    "kl-fixed": "reasoning",
    "kl-reset": "reasoning",
    "sft-from-dev2": "sft",
    "one-sft": "sft",
    "preference-long": "scenarios preference",
}


def test_another_cold_start_trains_what_comes_of_it_and_nothing_else(plan):
    """It measures every checkpoint again: the reward model that scores their replies comes of it too."""
    finish(GRID)
    assert plan({"r1"}, GRAPH) == set()
    made = plan({"r1"}, changed("cpu", {"cold_start": {"corpus": {"documents": 501}}}))
    trained = {path for path in made if path.endswith("metrics.json")}
    assert trained == set().union(*(sentinels(*of_arm) for of_arm in COMES_OF_IT.items()))
    assert made - trained == {node.sentinel for node in GRID if node.kind == "eval"}


def test_another_cold_start_of_one_arm_redoes_that_arm_alone(plan):
    finish(GRID)
    made = plan({"r1"}, changed("cold-start-50", {"cold_start": {"corpus": {"documents": 51}}}))
    assert made == sentinels("cold-start-50", "cold_start reasoning", "dev1 dev2")


def test_the_quickstart_of_every_recipe_is_a_page_to_ask_for(plan):
    """From an empty folder, as the README has it."""
    recipes = [name for name, recipe in RECIPES.items() if "quickstart" in recipe.layers.content]
    expected = set()
    for name in recipes:
        spec = RECIPES[name].layers.content
        arms, seeds = RECIPES[name].selection("cpu", "quickstart", 1)
        at_cpu = [
            arm for arm in spec["quickstart"]["arms"] if "cpu" in spec["arms"][arm].get("scales", ["cpu"])
        ]
        assert arms == at_cpu != []
        expected |= {node.sentinel for node in GRAPH.grid(name, "cpu", arms, seeds)}
    assert plan({f"results/{name}/cpu/quickstart.html" for name in recipes}, GRAPH) == expected
