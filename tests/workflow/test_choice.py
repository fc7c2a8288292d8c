"""`--config recipe=… arms=… claims=… seeds=…`: parts of a recipe, and recipes that are not in recipes/."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from judged_claims import by_id

from encore.errors import UserError
from encore.recipe.checks import capacity
from encore.recipe.graph import Graph
from encore.recipe.layers import Layers
from encore.recipe.load import load_sound
from encore.recipe.recipe import Recipe
from encore.workflow import clean, targets
from encore.workflow.choice import choice, own_file
from encore.workflow.jobs import Jobs
from encore.workflow.outputs import Report

EVERY = ["base-recipe", "hot", "other-base"]


def asked(graph, target, **config):
    run = Jobs(graph, choice(graph.recipes, config))
    return run, targets.target_of(graph, run.choice, target, "demo")


def made(graph, target, **config):
    """Arms and seeds of what is asked for."""
    run, reports = asked(graph, target, **config)
    return [(one.report, *run.selection(one)) for one in reports]


def test_chosen_parts_have_a_report_of_their_own(demo):
    assert made(demo, "demo") == [("report", EVERY, [0, 1])]
    assert made(demo, "demo", arms="hot") == [("chosen", ["hot"], [0, 1])]
    assert made(demo, "all", arms="hot", seeds="3,0") == [("chosen", ["hot"], [0, 3])]
    assert made(demo, "demo", seeds="1,") == [("chosen", EVERY, [1])]
    assert made(demo, "demo", seeds=5) == [("report", EVERY, [0, 1, 2, 3, 4])]
    run, (report,) = asked(demo, "demo", arms="hot")
    nodes = {node.arm for node in run.nodes([report]) if node.recipe == "demo" and node.name == "rl"}
    assert nodes == {"hot"}
    assert run.page("demo") == run.first_page("demo") == Report("demo", "cpu", "chosen").page


def test_the_arms_of_a_claim(demo):
    claim = {"id": "hotter", "metric": "heldout/accuracy", "of": "hot/after",
             "against": "base-recipe/after", "direction": "higher", "margin": 0.1}  # fmt: skip
    spec = demo.recipes["demo"].layers.content
    arms = spec["arms"] | {"third": {"about": "no claim is about it"}}
    graph = Graph(
        {**demo.recipes, "demo": Recipe("demo", Layers(spec | {"arms": arms, "claims": by_id([claim])}))}
    )
    assert made(graph, "demo", claims="hotter") == [("chosen", ["base-recipe", "hot"], [0, 1])]
    with pytest.raises(UserError, match='unknown claim "hoter"; did you mean "hotter"'):
        made(graph, "demo", claims="hoter")


@pytest.mark.parametrize(
    ("target", "config", "message"),
    [
        ("demo", {"arms": "hott"}, 'arms: demo at scale cpu: unknown arm "hott"; did you mean "hot"?'),
        ("demo", {"seeds": "0,x"}, "a list (0,2 or, for one, 2,) or auto, got 0,x"),
        ("demo", {"seeds": 1001}, "--config seeds: expected at most 1000, got 1001"),
        ("demo", {"seeds": 10**18}, f"--config seeds: expected at most 1000, got {10**18}"),
        ("demo", {"seeds": "0,1000001"}, "--config seeds: expected at most 1000000, got 1000001"),
        (
            "demo",
            {"seeds": "auto", "arms": "hot"},
            "auto judges every claim; it cannot be combined",
        ),
        ("results/demo/cpu/report.html", {"arms": "hot"}, "go with chosen.html alone"),
        ("results/demo/cpu/chosen.html", {}, "go with chosen.html alone"),
        ("all", {"recipe": "dmo"}, 'recipe: unknown recipe "dmo"; did you mean "demo"?'),
    ],
)
def test_mistakes_in_what_is_chosen(demo, target, config, message):
    with pytest.raises(UserError) as error:
        asked(demo, target, **config)
    assert message in str(error.value)


def test_seeds_on_which_dials_were_chosen_are_not_judged(demo):
    dials = [{"what": "the rate", "seeds": [1000, 1001], "outcome": "1e-4"}]
    recipe = Recipe("demo", Layers(demo.recipes["demo"].layers.content | {"dials": dials}))
    with pytest.raises(
        UserError, match="were chosen on seed 1000, so nothing is judged on it; take others, from 0"
    ):
        made(Graph({**demo.recipes, "demo": recipe}), "demo", seeds="0,1000")


def test_the_quickstart_of_another_recipe(demo):
    assert asked(demo, "all", recipe="base")[1] == [Report("base", "cpu", "quickstart")]


@pytest.mark.parametrize(
    ("recipe", "file"),
    [("demo", None), ("mine.yaml", "mine.yaml"), ("../mine.yaml", "../mine.yaml"), ("a/mine", "a/mine")],
)
def test_a_recipe_is_a_name_or_a_file(recipe, file):
    assert own_file({"recipe": recipe}) == (Path(file) if file else None)
    assert own_file({}) is None


def test_a_recipe_from_elsewhere(demo, project, tmp_path, monkeypatch):
    """It may build on those in recipes/; analysis is told of its file; its checkpoints count as used."""
    monkeypatch.chdir(project.folder)
    own = tmp_path / "elsewhere/mine.yaml"
    own.parent.mkdir()
    own.write_text((project.folder / "recipes/demo.yaml").read_text())
    recipes, broken = load_sound(user_file=own)
    assert ({*recipes}, broken) == ({*demo.recipes, "mine"}, {})
    run, reports = asked(Graph(recipes), "mine", recipe=str(own))
    assert reports == [Report("mine", "cpu", "report")]
    assert (
        run.named(SimpleNamespace(recipe="mine", scale="cpu", report="report", keys=dict))
        == f"--recipe {own}"
    )

    node = next(node for node in run.nodes(reports) if node.recipe == "mine" and node.kind == "stage")
    kept = Path("checkpoints") / run.of_training()["checkpoints"](node)
    kept.mkdir(parents=True)
    clean.remember(own)
    monkeypatch.setattr("sys.argv", ["clean"])
    assert clean.main() == 0
    assert kept.exists()
    own.unlink()
    assert clean.main() == 0
    assert not kept.exists()

    (own.parent / "demo.yaml").write_text("")
    with pytest.raises(UserError, match=r"demo\.yaml: recipes/demo\.yaml has the same name; rename yours"):
        load_sound(user_file=own.parent / "demo.yaml")


def test_a_world_with_too_few_questions_is_found_before_anything_runs(demo):
    """All at once: of a stage, and of an evaluation of the other arm."""
    spec = json.loads(json.dumps(demo.recipes["demo"].layers.content))
    few = {"world": "chain", "terms": [2, 2]}
    stage = {"run": "grpo", "task": few, "needs": spec["stages"]["rl"].get("needs", {})}
    task = {"task": few, "items": 64}
    spec["stages"]["rl"] = stage
    spec["arms"]["hot"]["stages"] = {}
    spec["evals"]["tasks"] = {"heldout": task}
    graph = Graph({**demo.recipes, "demo": replace(demo.recipes["demo"], layers=Layers(spec))})
    nodes = graph.grid("demo", "cpu", ["base-recipe", "hot"], [0, 1])
    with pytest.raises(UserError) as error:
        capacity.check_capacity(graph, nodes)
    stages = [line for line in error.value.lines if "stages.rl.task: 4096 distinct train questions" in line]
    evals = [
        line for line in error.value.lines if "evals.tasks.heldout.task: 64 distinct test questions" in line
    ]
    assert (len(stages), len(evals), len(error.value.lines)) == (1, 1, 2)
    spec["stages"]["rl"]["problems"] = spec["evals"]["tasks"]["heldout"]["items"] = 8
    capacity.check_capacity(
        Graph({**demo.recipes, "demo": replace(demo.recipes["demo"], layers=Layers(spec))}), nodes
    )


def test_more_questions_of_a_world_than_can_be_drawn_are_refused_undrawn(demo):
    spec = json.loads(json.dumps(demo.recipes["demo"].layers.content))
    world = {"world": "chain"}
    spec["stages"]["rl"] = {"run": "grpo", "task": world, "problems": 10**18, "needs": {}}
    spec["evals"]["tasks"] = {"heldout": {"task": world, "items": 10**9}}
    graph = Graph({**demo.recipes, "demo": replace(demo.recipes["demo"], layers=Layers(spec))})
    with pytest.raises(UserError) as error:
        capacity.check_capacity(graph, graph.grid("demo", "cpu", ["base-recipe"], [0]))
    wrong = "expected at most 100000 questions of a world, got"
    where = "(scale cpu, arm base-recipe)"
    file = demo.recipes["demo"].files.file()
    assert error.value.lines == [
        f"{file}: stages.rl.problems: {wrong} {10**18} {where}",
        f"{file}: evals.tasks.heldout.items: {wrong} {10**9} {where}",
    ]


def test_leaked_and_skipped_problems_count_among_those_that_a_world_must_have(demo):
    """Sums of two digits have 13 test questions."""
    few = {"world": "chain", "terms": [2, 2]}
    part = {"task": few, "template": "{question}", "mixture": {"direct": 1}, "share": 0.5, "leaked": 64}
    spec = json.loads(json.dumps(demo.recipes["demo"].layers.content))
    corpus = {"documents": 8, "mixture": {"direct": 1}, "also": [part]}
    asked = {"task": few, "template": "{question}", "corpus": corpus}
    spec["stages"]["rl"] = {"run": "sft", **asked, "needs": {}}
    spec["evals"]["tasks"] = {"heldout": {"task": few, "items": 8, "skip": 16}}
    graph = Graph({**demo.recipes, "demo": replace(demo.recipes["demo"], layers=Layers(spec))})
    with pytest.raises(UserError) as error:
        capacity.check_capacity(graph, graph.grid("demo", "cpu", ["base-recipe"], [0]))
    leaked, skipped = error.value.lines
    assert "stages.rl.corpus.also[0].task: 64 distinct test questions" in leaked
    assert "evals.tasks.heldout.task: 24 distinct test questions" in skipped


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_file_with_too_few_rows_is_found_before_anything_runs(demo, tmp_path, suffix):
    """A rollout takes 128 / 8 questions; an evaluation its items; `problems` what it says."""
    file = tmp_path / f"my{suffix}"
    table = pd.DataFrame({"question": ["1+1="] * 15, "answer": ["2"] * 15})
    if suffix == ".parquet":
        table.to_parquet(file)
    else:
        file.write_text(table.to_json(orient="records", lines=True) + "\n\n")  # an empty line is no row
    few = {"file": str(file), "question": "question", "answer": "answer"}
    spec = json.loads(json.dumps(demo.recipes["demo"].layers.content))
    args = {"per_device_train_batch_size": 64, "steps_per_generation": 2, "num_generations": 8}
    spec["stages"]["rl"] = stage = {"run": "grpo", "task": few, "args": args, "needs": {}}
    spec["evals"]["tasks"] = {"heldout": {"task": few, "items": 16}}

    recipe = demo.recipes["demo"].files.file()

    def mistakes() -> list[str]:
        graph = Graph({**demo.recipes, "demo": replace(demo.recipes["demo"], layers=Layers(spec))})
        try:
            capacity.check_capacity(graph, graph.grid("demo", "cpu", ["base-recipe"], [0]))
        except UserError as error:
            return error.lines
        return []

    assert mistakes() == [
        f"{recipe}: {place}.task.file: {file} has 15 rows; {why} (scale cpu, arm base-recipe)"
        for place, why in (
            ("stages.rl", "one rollout asks for 16"),
            ("evals.tasks.heldout", "items asks for 16"),
        )
    ]
    spec["evals"]["tasks"]["heldout"]["items"] = 15
    args["num_generations"] = 16
    assert mistakes() == []
    del stage["args"]
    stage["problems"] = 20
    assert "problems asks for 20" in mistakes()[0]
