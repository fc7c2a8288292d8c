"""Candidate templates in a recipe: only a base model is asked by them, and every mistake is one line."""

import pytest
from lm_eval_tasks import GSM8K

from encore.recipe.graph import Graph, Node

TASK = "evals/tasks/heldout"
CANDIDATES = {"bare": "{question}"}


@pytest.fixture
def asked(folder):
    folder.set("paper", f"{TASK}/templates", CANDIDATES)
    return folder


def task(graph, checkpoint, scale="cpu"):
    return graph.config(Node("paper", scale, "base-recipe", 0, checkpoint, "eval"))["tasks"]["heldout"]


@pytest.mark.parametrize("scale", ["cpu", "paper"])  # a stage of another recipe, and a model of the Hub
def test_the_base_alone_is_asked_by_the_candidates(asked, scale):
    graph = Graph(asked.load())
    assert task(graph, "before", scale)["templates"] == CANDIDATES
    assert "templates" not in task(graph, "after", scale)


def test_what_is_no_base_model_keeps_its_lineage(folder):
    def lineages():
        graph = Graph(folder.load())
        return {
            name: graph.lineage(Node("paper", "cpu", "base-recipe", 0, name, "eval"))
            for name in ("before", "after")
        }

    without = lineages()
    folder.set("paper", f"{TASK}/templates", CANDIDATES)
    assert lineages()["after"] == without["after"]
    assert lineages()["before"] != without["before"]


def test_a_policy_that_the_recipe_has_trained_is_no_base(asked):
    args = {"learning_rate": 1e-4, "lr_scheduler_type": "constant"}
    corpus = {"documents": 4, "mixture": {"chain": 1.0}}
    sft = {"run": "sft", "needs": {"policy": "tiny/pretrain"}, "args": args, "corpus": corpus}
    asked.remove("paper", "scales/paper")
    asked.remove("paper", "arms/only-cpu")
    asked.set("paper", "stages/sft", sft | {"task": {"world": "chain"}, "template": "{question}"})
    asked.set("paper", "scales/cpu/stages", {"grpo": {"needs": {"policy": "sft"}}})
    asked.set("paper", "scales/cpu/evals", {"checkpoints": {"base": "sft.policy"}})
    graph = Graph(asked.load())
    assert "templates" in task(graph, "base")
    assert "templates" not in task(graph, "before")


def test_candidates_for_no_base_model(asked):
    asked.set("paper", "evals/checkpoints", {"after": "grpo"})
    asked.remove("paper", "claims")
    expected = (
        "templates: they are for a base model, which none of its checkpoints is; remove them (scale cpu"
    )
    assert f"evals.tasks.heldout.{expected}" in asked.mistake()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"templates": {"bare": "Q"}}, "templates.bare: expected {question} exactly once, got 'Q'"),
        (
            {"templates": {"Bare": "{question}"}},
            'templates: expected a name of lower-case letters, digits, "-" and, before a digit, "."',
        ),
        ({"templates": {"bare": 3}}, "templates.bare: expected text, got 3"),
        ({"templates": ["{question}"]}, "templates: expected a mapping, got a list"),
    ],
)
def test_a_mistake_is_one_line(folder, spec, message):
    for key, value in spec.items():
        folder.set("paper", f"{TASK}/{key}", value)
    assert f"evals.tasks.heldout.{message}" in folder.mistake()


def test_a_task_of_lm_evals_has_none(folder):
    folder.set("paper", "evals/tasks/gsm8k", GSM8K | {"templates": CANDIDATES})
    assert "evals.tasks.gsm8k.templates: lm-eval's gsm8k has its own prompt; leave it out" in folder.mistake()


def test_an_arm_that_leaves_the_base_out_may_keep_the_task(asked):
    asked.set("paper", "arms/hot/evals", {"checkpoints": {"before": None}})
    assert "templates" not in task(Graph(asked.load()), "after")


def test_a_task_of_nothing_is_told_as_without_candidates(asked):
    asked.remove("paper", f"{TASK}/task")
    asked.set("paper", "evals/sensitivity", {"task": "heldout", "backends": ["hf", "lean"]})
    assert 'expected one of "task" (a world or dataset) and "lm_eval"' in asked.mistake()
