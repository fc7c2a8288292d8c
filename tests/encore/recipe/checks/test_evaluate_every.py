"""Key `evaluate_every`: evaluations within a stage, each a job of its own; a mistake is one line."""

import json
from types import SimpleNamespace

import pytest

from encore.recipe.graph import Graph, Node
from encore.runtime import digests, files
from encore.workflow import marks
from encore.workflow.jobs import Jobs
from encore.workflow.targets import Choice, target_of

STEPS = {"after_step20": ("after", 20), "after_step40": ("after", 40)}


@pytest.fixture
def followed(folder):
    folder.set("paper", "stages/grpo/evaluate_every", 20)
    folder.set("paper", "stages/grpo/args/max_steps", 60)
    return folder


def at(name, arm="base-recipe", seed=1, kind="eval"):
    return Node("paper", "cpu", arm, seed, name, kind)


def test_what_is_measured(followed):
    graph = Graph(followed.load())
    recipe = graph.recipes["paper"]
    assert recipe.within("cpu", "base-recipe") == STEPS
    assert recipe.checkpoints("cpu", "base-recipe") == ["before", "after"]
    nodes = graph.grid("paper", "cpu", ["base-recipe"], [1])
    assert [node.name for node in nodes if node.kind == "eval"] == ["before", "after", *STEPS]
    assert [graph.measured(at(name)) for name in ("after", *STEPS)] == [("after", None), *STEPS.values()]
    for name in STEPS:
        assert graph.config(at(name)) == graph.config(at("after"))
        assert graph.inputs(at(name)) == graph.inputs(at("after")) == {"model": at("grpo", kind="stage")}
    assert len({graph.lineage(at(name)) for name in ("after", *STEPS)}) == 3
    assert graph.owner(at("after_step20", "hot")).arm == "hot"


def test_tasks_of_the_checkpoint_alone(followed):
    task = followed.specs["paper"]["evals"]["tasks"]["heldout"]
    followed.set("paper", "evals/tasks/of-before", task | {"checkpoints": ["before"]})
    followed.set("paper", "evals/tasks/of-after", task | {"checkpoints": ["after"]})
    config = Graph(followed.load()).config(at("after_step20"))
    assert config["tasks"].keys() == {"heldout", "of-after"}


def test_what_is_not_asked_for_changes_no_lineage(folder):
    folder.set("paper", "stages/grpo/args/max_steps", 60)
    before = Graph(folder.load())
    folder.set("paper", "scales/cpu/arms/hot/stages/grpo/evaluate_every", 20)
    after = Graph(folder.load())
    for name, kind in (("grpo", "stage"), ("before", "eval"), ("after", "eval")):
        assert before.lineage(at(name, kind=kind)) == after.lineage(at(name, kind=kind))
    assert before.lineage(at("grpo", "hot", kind="stage")) != after.lineage(at("grpo", "hot", kind="stage"))


def test_the_command_line_and_a_target_name_the_step(followed):
    graph = Graph(followed.load())
    jobs, folder = Jobs(graph, Choice("cpu", None)), "results/paper/cpu/base-recipe/seed1"
    wildcards = {"recipe": "paper", "scale": "cpu", "arm": "base-recipe", "seed": "1"}
    for checkpoint, option in (("after", ""), ("after_step40", "--step 40")):
        w = SimpleNamespace(**wildcards, checkpoint=checkpoint, keys=lambda: ["checkpoint"])
        assert (jobs.model(w), jobs.judges(w)) == (f"{folder}/grpo/metrics.json", option)
    target = f"{folder}/evals/after_step40.json"
    assert target_of(graph, Choice("cpu", None), target, "paper") == [at("after_step40")]


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ({"20": {"digest": "sha256:20", "model": "y"}}, None),
        ({"20": {"digest": "sha256:60", "model": "y"}}, "its checkpoint has changed"),
        ({}, None),  # of a stage that was made without the key, and is to be redone
    ],
)
def test_it_is_redone_when_its_own_model_has_changed(followed, tmp_path, monkeypatch, steps, reason):
    graph, node = Graph(followed.load()), at("after_step20")
    monkeypatch.chdir(tmp_path)
    stage = {"digest": "sha256:60", "model": "x", "steps": steps}
    files.write_json(tmp_path / at("grpo", kind="stage").sentinel, stage)
    path = tmp_path / node.sentinel
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"digest": "sha256:20"}))
    digests.record(path).write_text(graph.lineage(node))
    (tmp_path / ".snakemake").mkdir()
    lines = marks.mark(graph, [node], {})
    assert lines == ([f"{node.sentinel}: {reason}; redoing it"] if reason else [])


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        ("stages/grpo/evaluate_every", 0, "stages.grpo.evaluate_every: expected at least 1, got 0"),
        ("stages/grpo/evaluate_evry", 20, "stages.grpo.evaluate_evry: unknown key; did you mean "),
        ("stages/grpo/args/max_steps", None, "stages.grpo.evaluate_every: it needs args.max_steps, "),
        ("stages/grpo/args/max_steps", 20, "evaluate_every: expected less than args.max_steps, 20, got 20"),
        (
            "stages/grpo/args/max_steps",
            60_000,
            "evaluate_every: 20 makes 2999 evaluations of 60000 steps, expected at most 1000; nearest: 60",
        ),
        (
            "stages/grpo/lora",
            {"rank": 4, "alpha": 8, "quantized": "nf4"},
            "whole only at the end; remove lora.q",
        ),
        (
            "evals/checkpoints/after",
            None,
            "evaluate_every: no checkpoint of evals.checkpoints is the",
        ),
        ("evals/checkpoints/after_step40", "grpo.policy", "after_step40 has the name of step 40; rename it"),
    ],
)
def test_a_mistake_is_one_line(followed, keys, value, message):
    if value is None:
        followed.remove("paper", keys)
        followed.specs["paper"].pop("claims")
    else:
        followed.set("paper", keys, value)
    assert message in followed.mistake()
