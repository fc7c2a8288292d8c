"""Protocols by name: what a task takes from one, what is stronger, and that no evaluation moved by it."""

import copy

import pytest
from papers import GRAPH, RECIPES

from encore.recipe.graph import Graph, Node
from encore.recipe.protocols import completed, departures, protocols
from encore.worlds.text import prompt

TASK = "evals/tasks/heldout"
OF_SAMPLING = ("temperature", "top_p", "max_gen_toks")
R1 = {"temperature": 0.6, "top_p": 0.95, "max_gen_toks": 32768}
ZOO = {"temperature": 1.0, "top_p": 0.95, "max_gen_toks": 4096}
OAT = {"temperature": 0.0, "top_p": 1.0, "max_gen_toks": 3000}
WRITTEN_OUT = [  # in every task; those of scale paper as before there were protocols
    *(("r1_zero", "paper", "base-recipe", task, R1, n) for task, n in (("aime24", 64), ("math500", 16))),
    *(("distill", "paper", "base-recipe", task, R1, n) for task, n in (("aime24", 64), ("math500", 16))),
    *(("distill", "paper", "zero-32b", task, R1, n) for task, n in (("aime24", 64), ("math500", 16))),
    *(("r1", "paper", "base-recipe", task, R1, 64) for task in ("aime24", "aime24-zero")),
    ("r1", "paper", "base-recipe", "requests", R1, 2),
    *(
        ("r1", "gpu", "base-recipe", task, R1 | {"max_gen_toks": 4096}, n)
        for task, n in (("math500", 4), ("math500-zero", 4), ("requests", 2))
    ),
    ("distill", "gpu", "base-recipe", "aime24", R1 | {"max_gen_toks": 16384}, 64),
    ("distill", "gpu", "base-recipe", "math500", R1 | {"max_gen_toks": 16384}, 4),
    ("distill", "gpu", "base-recipe", "math500-base", R1 | {"max_gen_toks": 3000}, 4),
    *(
        ("distill", "gpu", "open-rs", f"{task}-chat", R1 | {"max_gen_toks": 16384}, n)
        for task, n in (("aime24", 16), ("math500", 1))
    ),
    ("r1_zero", "gpu", "base-recipe", "math500", ZOO, 4),
    ("r1_zero", "gpu", "base-recipe", "gsm8k", ZOO, 1),
    *((recipe, "gpu", "base-recipe", "math500-greedy", OAT, 1) for recipe in ("dapo", "dr_grpo", "gspo")),
    ("objectives", "gpu", "base-recipe", "heldout-greedy", OAT, 1),
    *(
        ("limits_of_rlvr", "gpu", "base-recipe", task, R1 | {"max_gen_toks": 3000}, n)
        for task, n in (("math500", 128), ("aime24", 1024))
    ),
    *(
        ("limits_of_rlvr", "paper", "base-recipe", task, R1 | {"max_gen_toks": 16384}, 256)
        for task in ("omni", "math500")
    ),
    ("dapo", "paper", "base-recipe", "aime24", {"temperature": 1.0, "top_p": 0.7, "max_gen_toks": 20480}, 32),
]


@pytest.mark.parametrize(("recipe", "scale", "arm", "task", "sampling", "samples"), WRITTEN_OUT)
def test_recipes_resolve_to_what_they_had_written_out(recipe, scale, arm, task, sampling, samples):
    measured = [
        config[task]
        for name in RECIPES[recipe].checkpoints(scale, arm)
        if task in (config := GRAPH.config(Node(recipe, scale, arm, 0, name, "eval"))["tasks"])
    ]
    assert measured
    for resolved in measured:
        assert {key: resolved[key] for key in OF_SAMPLING} == sampling
        assert resolved["samples"] == samples
        assert "protocol" not in resolved


def test_every_task_that_names_a_protocol_is_in_that_table():
    named = {
        (name, scale, task)
        for name, recipe in RECIPES.items()
        for scale in recipe.scales
        if scale != "gpu-24gb"  # its tasks are those of gpu
        for arm in recipe.arms(scale)
        for task, spec in recipe.layers.merged(scale, arm, "evals").get("tasks", {}).items()
        if "protocol" in spec
    }
    assert named == {(recipe, scale, task) for recipe, scale, _, task, *_ in WRITTEN_OUT}


@pytest.mark.parametrize("name", protocols())
def test_a_protocol_has_a_source_and_settings_of_a_task(name):
    protocol = protocols()[name]
    assert set(protocol) == {"source", "settings"}
    assert set(OF_SAMPLING) <= set(protocol["settings"]) <= {*OF_SAMPLING, "samples", "template"}
    prompt(protocol["settings"].get("template", "{question}"), "")
    if protocol["settings"]["temperature"] == 0:
        assert protocol["settings"]["samples"] == 1


@pytest.fixture
def named(folder):
    """Recipe `paper`, whose task says what it asks and leaves the rest to a protocol."""
    folder.set("paper", TASK, {"task": {"world": "chain"}, "items": 8, "k": [1], "protocol": "dr_grpo"})
    return folder


def task(folder, scale="cpu", arm="base-recipe"):
    node = Node("paper", scale, arm, 0, "after", "eval")
    return Graph(folder.load()).config(node)["tasks"]["heldout"]


def test_a_protocol_by_its_name_is_the_same_evaluation_as_its_numbers(named):
    node = Node("paper", "cpu", "base-recipe", 0, "after", "eval")
    by_name = Graph(named.load())
    resolved = copy.deepcopy(by_name.config(node)["tasks"]["heldout"])
    assert resolved == {"task": {"world": "chain"}, "items": 8, "k": [1]} | protocols()["dr_grpo"]["settings"]
    named.set("paper", TASK, resolved)
    written_out = Graph(named.load())
    assert written_out.lineage(node) == by_name.lineage(node)
    assert written_out.config(node) == by_name.config(node)


def test_a_key_of_the_task_is_stronger_in_whichever_layer_it_stands(named):
    named.set("paper", f"{TASK}/max_gen_toks", 64)
    assert task(named)["max_gen_toks"] == 64
    named.set("paper", "scales/cpu/evals", {"tasks": {"heldout": {"max_gen_toks": 32}}})
    named.set("paper", "arms/hot/evals", {"tasks": {"heldout": {"template": "{question}!"}}})
    assert task(named)["max_gen_toks"] == 32
    assert task(named, "paper")["max_gen_toks"] == 64
    assert task(named)["template"] == protocols()["dr_grpo"]["settings"]["template"]
    assert task(named, arm="hot")["template"] == "{question}!"


def test_an_arm_may_name_another_protocol(named):
    named.set("paper", "arms/hot/evals", {"tasks": {"heldout": {"protocol": "qwen25_math"}}})
    assert task(named)["max_gen_toks"] == 3000
    assert task(named, arm="hot")["max_gen_toks"] == 2048


@pytest.mark.parametrize("own", [{"chat": True}, {"lm_eval": "gsm8k"}])
def test_a_task_with_a_prompt_of_its_own_takes_no_template(own):
    assert "template" not in completed(own | {"protocol": "dr_grpo"})
    assert completed(own | {"protocol": "dr_grpo"})["max_gen_toks"] == 3000


def test_departures_are_told_with_what_they_replace():
    spec = completed({"protocol": "deepseek_r1", "max_gen_toks": 4096, "temperature": 0.6, "samples": 4})
    assert departures(spec) == {"max_gen_toks": (32768, 4096)}
    assert departures(completed({"temperature": 1.0})) == {}


def test_an_unknown_protocol_is_told_with_the_nearest(named):
    named.set("paper", f"{TASK}/protocol", "deepseek-r1")
    expected = 'evals.tasks.heldout.protocol: unknown protocol "deepseek-r1"; did you mean "deepseek_r1"?'
    assert expected in named.mistake()


def test_what_a_protocol_leaves_open_must_be_written(named):
    named.set("paper", f"{TASK}/protocol", "deepseek_r1")
    assert "heldout.samples: missing" in named.mistake(2)  # and the template
