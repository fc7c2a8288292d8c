"""Lengths that a plan takes of a world's texts, against documents counted by the tokenizer itself."""

from statistics import fmean

import pytest
import typed
from papers import GRAPH

from encore import worlds
from encore.data import corpora
from encore.forecast import lengths
from encore.forecast.hardware import Assumptions
from encore.forecast.work import of_node
from encore.recipe.graph import Node


def stage(recipe, name, arm="base-recipe", scale="cpu"):
    node = Node(recipe, scale, arm, 1000, name, "stage")
    return node, GRAPH.config(node)


@pytest.mark.parametrize(
    ("recipe", "name", "arm"),
    [
        ("tiny_lm", "pretrain", "base-recipe"),
        ("tiny_lm", "pretrain", "bilingual"),
        ("tiny_lm", "pretrain", "functions"),
        ("tiny_lm", "pretrain", "slips"),
        ("policy_gradient", "pretrain", "base-recipe"),
        ("tldr", "sft", "base-recipe"),
    ],
)
def test_a_corpus_is_as_long_as_its_documents(recipe, name, arm):
    _, config = stage(recipe, name, arm)
    few = config | {"corpus": config["corpus"] | {"documents": 3000}}
    documents = corpora.documents(*typed.corpus(few), seed=1)
    tokenizer = worlds.tokenizer(corpora.worlds_of(*typed.corpus(config)[::2]))
    ids = [(tokenizer(prompt).input_ids, tokenizer(text).input_ids) for prompt, text in documents]
    mean = lengths.of_corpus(config)
    assert mean.prompt == pytest.approx(fmean(len(prompt) for prompt, _ in ids), rel=0.05)
    assert mean.completion == pytest.approx(fmean(len(text) + 1 for _, text in ids), rel=0.05)


def test_answers_are_of_the_kinds_that_the_policy_has_learnt_last():
    """r1's cold start brings kinds of its own; R1-Zero goes on from the base's, of which many only guess."""
    begun, from_base = (
        lengths.corpus_of(GRAPH, stage("r1", name)[0], "bilingual") for name in ("rejection", "zero")
    )
    assert [set(kinds) for _, kinds in begun[0]] == [{"readable", "mixed"}]
    assert "direct" in from_base[0][0][1]
    assert begun[1]
    assert from_base[1]
    cold = lengths.of_corpus(stage("r1", "cold_start")[1])
    sampled = lengths.of_samples(GRAPH, *stage("r1", "rejection"), cap=96)
    assert sampled.completion == pytest.approx(cold.completion, rel=0.05)


def test_reinforcement_moves_answers_to_the_kinds_that_are_right():
    node, config = stage("r1_zero", "grpo")
    sampled = lengths.of_samples(GRAPH, GRAPH.inputs(node)["policy"], config, cap=56)
    after = lengths.of_samples(GRAPH, node, config, cap=56)
    assert after.completion > 1.2 * sampled.completion  # working out, where half of the base's answers guess
    assert after.prompt == pytest.approx(sampled.prompt, rel=0.05)


def test_the_cap_cuts():
    node, config = stage("r1_zero", "grpo")
    assert lengths.of_samples(GRAPH, node, config, cap=10).completion <= 10


def test_a_published_model_has_learnt_nocorpus_of_a_world():
    _, config = stage("r1_zero", "grpo")
    node, _ = stage("r1_zero", "grpo", scale="gpu")
    assert lengths.of_samples(GRAPH, node, config, cap=56) is None


def test_worlds_of_programs_are_counted_without_running_any(monkeypatch):
    monkeypatch.setattr("encore.worlds.functions.Functions.verify", lambda *_: pytest.fail("ran a program"))
    node, config = stage("code", "grpo")
    other = config | {"task": config["task"] | {"operations": [2, 4]}}  # not counted by an earlier test
    assert lengths.of_samples(GRAPH, node, other, cap=112).completion > 20


def test_roll_outs_go_on_from_the_prompts_of_their_data():
    labels, sampled = (
        of_node(GRAPH, stage("process_supervision", name, arm)[0], Assumptions()).generation
        for name, arm in (("label_steps", "rollouts"), ("sample", "base-recipe"))
    )
    assert (labels.prompt, labels.mean) == (sampled.prompt, sampled.mean)
