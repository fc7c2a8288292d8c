"""`sensitivity`: the evaluations it asks for, what each is given, and that all others stay what they were."""

import copy

import pytest
from evaluated import parse
from lm_eval_tasks import GSM8K
from papers import GRAPH, RECIPES

from encore.recipe.evals import Evals
from encore.recipe.graph import Graph, Node
from encore.recipe.sensitivity import Protocol

KEY = "evals/sensitivity"
ASKED = {
    "task": "heldout",
    "items": 4,
    "templates": {"turn": "<user>{question}<assistant>", "begun": "<user>{question}<assistant><think>"},
    "wordings": {"plain": "{question}", "polite": "Please: {question}"},
    "temperatures": [1.0, 0],
    "backends": ["lean", "hf"],
}


@pytest.fixture
def asked(folder):
    folder.set("paper", KEY, copy.deepcopy(ASKED))
    return folder


def grid(graph, arms=("base-recipe", "hot"), seeds=(0, 1)):
    return graph.grid("paper", "cpu", list(arms), list(seeds))


def config(graph, name, seed=0):
    return graph.config(Node("paper", "cpu", "base-recipe", seed, name, "eval"))


def test_it_asks_for_the_first_arm_and_seed_before_and_after_by_each_backend(asked):
    with_it = grid(Graph(asked.load()))
    asked.remove("paper", KEY)
    without = grid(Graph(asked.load()))
    added = set(with_it) - set(without)
    assert set(without) <= set(with_it)
    assert {(node.arm, node.seed, node.kind) for node in added} == {("base-recipe", 0, "eval")}
    assert {node.name for node in added} == {
        f"{end}_sensitivity_{backend}" for end in ("before", "after") for backend in ("lean", "hf")
    }


def test_no_other_result_has_another_lineage_for_it_and_it_none_for_theirs(asked):
    def lineages():
        graph = Graph(asked.load())
        return {node: graph.lineage(node) for node in grid(graph)}

    first = lineages()
    asked.set("paper", KEY, ASKED | {"temperatures": [1.0, 0.3]})
    second = lineages()
    assert {node for node in first if first[node] != second[node]} == {
        node for node in first if "_sensitivity_" in node.name
    }
    asked.set("paper", "evals/tasks/heldout/k", [1])
    third = lineages()
    assert {node.name for node in first if third[node] != second[node]} == {"before", "after"}


def test_the_tasks_are_every_combination(asked):
    graph = Graph(asked.load())
    found = config(graph, "after_sensitivity_lean")
    assert found["backend"] == "lean"
    assert config(graph, "before_sensitivity_hf")["backend"] == "hf"
    assert len(found["tasks"]) == 8
    assert found["tasks"]["begun+polite+t1"] == {
        "task": {"world": "chain"},
        "template": "<user>Please: {question}<assistant><think>",
        "items": 4,
        "samples": 4,
        "temperature": 1.0,
        "top_p": 1.0,
        "max_gen_toks": 64,
        "k": [1],
    }
    greedy = found["tasks"]["turn+plain+t0"]
    assert (greedy["temperature"], greedy["samples"]) == (0, 1)
    assert {task.name for task in parse(found)} == set(found["tasks"])


def test_a_choice_that_is_not_asked_for_is_the_tasks_own(asked):
    asked.set("paper", KEY, {"task": "heldout", "temperatures": [1.0, 0.5]})
    graph = Graph(asked.load())
    names = [node.name for node in grid(graph) if "sensitivity" in node.name]
    assert sorted(names) == ["after_sensitivity_hf", "before_sensitivity_hf"]
    found = config(graph, "after_sensitivity_hf")["tasks"]
    assert list(found) == ["own+own+t1", "own+own+t0.5"]
    assert {task["template"] for task in found.values()} == {"{question}"}


def test_the_engines_arguments_are_those_of_its_own_backend(asked):
    asked.set("paper", "evals/backend", "vllm")
    asked.set("paper", "evals/backend_args", {"max_model_len": 64})
    asked.set("paper", f"{KEY}/backends", ["vllm", "hf"])
    graph = Graph(asked.load())
    assert config(graph, "after_sensitivity_vllm")["backend_args"] == {"max_model_len": 64}
    assert "backend_args" not in config(graph, "after_sensitivity_hf")


def test_by_chat_the_wording_is_what_the_user_says():
    task = {"task": {"world": "chain"}, "chat": {"system": "s", "user": "Q: {question}"}, "temperature": 0.5}
    evals = {
        "checkpoints": {"before": "grpo.policy", "after": "grpo"},
        "sensitivity": {"task": "t", "wordings": {"a": "{question}", "b": "<{question}>"}},
        "tasks": {"t": task},
    }
    chats = [one["chat"] for one in tasks(evals)]
    assert chats == [{"system": "s", "user": "Q: {question}"}, {"system": "s", "user": "Q: <{question}>"}]
    evals["tasks"]["t"] = task | {"chat": True}
    assert [one["chat"] for one in tasks(evals)] == [{"user": "{question}"}, {"user": "<{question}>"}]
    evals["sensitivity"]["templates"] = {"bare": "{question}!"}
    assert [one.get("template") for one in tasks(evals)] == ["{question}!", "<{question}>!"]
    assert not any("chat" in one for one in tasks(evals))


def tasks(evals):
    """What the evaluation before training is given of each task."""
    evaluation = Evals.model_validate(evals).evaluation("before_sensitivity_hf", "before", of_base=True)
    return [task.said for task in evaluation.tasks.values()]


def test_the_first_protocol_is_the_first_of_each():
    evals = Evals.model_validate({"sensitivity": ASKED, "tasks": {"heldout": {"temperature": 1.0}}})
    assert evals.protocols[0] == Protocol("turn", "plain", 1.0, "lean")
    assert len(set(evals.protocols)) == 16


def test_r1_zero_asks_for_it_by_its_own_protocol_first():
    first = RECIPES["r1_zero"].evals("cpu", "base-recipe").protocols[0]
    task = GRAPH.config(Node("r1_zero", "cpu", "base-recipe", 1, "after", "eval"))
    sensitivity = GRAPH.config(
        Node("r1_zero", "cpu", "base-recipe", 0, f"after_sensitivity_{first.backend}", "eval")
    )
    heldout, own = task["tasks"]["heldout"], sensitivity["tasks"][first.task]
    assert first.backend == task["backend"]
    for key in ("template", "temperature", "top_p", "max_gen_toks", "task"):
        assert own[key] == heldout[key]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "heldowt"}, 'sensitivity.task: unknown task "heldowt"; did you mean "heldout"?'),
        (
            {"templates": {"bare": "no"}},
            "sensitivity.templates.bare: expected {question} exactly once, got 'no'",
        ),
        (
            {"wordings": {"w": "{question}{question}"}},
            "sensitivity.wordings.w: expected {question} exactly once",
        ),
        ({"temperatures": [0.5, 0.5]}, "sensitivity.temperatures: 0.5 is there twice; remove one"),
        ({"backends": ["hf", "hf"]}, "sensitivity.backends: hf is there twice; remove one"),
        ({"backends": ["hff"]}, 'sensitivity.backends[0]: unknown value the text "hff"; did you mean "hf"?'),
        ({"temperature": [1.0]}, 'sensitivity.temperature: unknown key; did you mean "temperatures"?'),
        (
            {"templates": ..., "wordings": ..., "temperatures": [0.5], "backends": ...},
            "sensitivity: nothing to compare; give two templates, wordings, temperatures or backends",
        ),
    ],
)
def test_a_mistake_is_one_line(asked, change, message):
    asked.set("paper", KEY, {key: value for key, value in (ASKED | change).items() if value is not ...})
    assert f"evals.{message}" in asked.mistake()


def test_it_needs_a_model_before_and_one_after(asked):
    asked.set("paper", "evals/checkpoints", {"after": "grpo"})
    asked.remove("paper", "claims")
    assert "evals.sensitivity: expected a checkpoint before and one after training" in asked.mistake()


def test_it_needs_a_task_of_a_world_or_data_set(asked):
    asked.set("paper", "evals/tasks/gsm8k", GSM8K)
    asked.set("paper", f"{KEY}/task", "gsm8k")
    assert "evals.sensitivity.task: lm-eval's gsm8k has its own prompt; name another task" in asked.mistake()


def test_no_checkpoint_may_be_called_like_one_of_its_evaluations(asked):
    asked.remove("paper", KEY)
    asked.set("paper", "evals/checkpoints/after_sensitivity_hf", "grpo")
    assert "evals.checkpoints.after_sensitivity_hf: a name with" in asked.mistake()


def test_an_arm_without_the_task_need_not_have_it(asked):
    own = asked.specs["paper"]["evals"]["tasks"]["heldout"]
    asked.set("paper", "arms/hot/evals", {"tasks": {"heldout": None, "other": own}})
    asked.remove("paper", "claims")
    assert grid(Graph(asked.load()))
