"""Lengths that a plan takes of a world's texts, against documents counted by the tokenizer itself."""

from dataclasses import replace
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
    return Node(recipe, scale, arm, 1000, name, "stage")


def of_samples(node, cap):
    """The lengths of what a stage asks, of one task."""
    (asked,) = lengths.asked_by(GRAPH.stage(node))
    return lengths.of_samples(GRAPH, node, asked, cap)


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
    made = GRAPH.stage(stage(recipe, name, arm))
    documents = corpora.documents(made.task, made.template, made.corpus, seed=1, count=3000)
    tokenizer = worlds.tokenizer(corpora.worlds_of(made.task, made.corpus))
    ids = [(tokenizer(prompt).input_ids, tokenizer(text).input_ids) for prompt, text in documents]
    mean = lengths.of_corpus(made)
    assert mean.prompt == pytest.approx(fmean(len(prompt) for prompt, _ in ids), rel=0.05)
    assert mean.completion == pytest.approx(fmean(len(text) + 1 for _, text in ids), rel=0.05)


def test_a_published_model_reads_several_characters_a_token():
    """The tokenizer of a world has a token for most letters, a published one for some three."""
    node = stage("instructgpt", "sft", scale="small")
    made = GRAPH.stage(node)
    texts = [
        text for pair in corpora.documents(made.task, made.template, made.corpus, seed=1) for text in pair
    ]
    mean = lengths.of_documents(GRAPH, node)
    read = (mean.prompt + mean.completion - 1) * lengths.CHARACTERS
    assert read == pytest.approx(2 * fmean(map(len, texts)), rel=0.05)
    assert lengths.of_documents(GRAPH, stage("instructgpt", "ppo", scale="small")).prompt == pytest.approx(
        mean.prompt, rel=0.05
    )


def test_answers_are_of_the_kinds_that_the_policy_has_learnt_last():
    """r1's cold start brings kinds of its own; R1-Zero goes on from the base's, of which many only guess."""
    begun, from_base = (
        lengths.corpus_of(GRAPH, stage("r1", name), "bilingual") for name in ("rejection", "zero")
    )
    assert [set(kinds) for _, kinds in begun[0]] == [{"readable", "mixed"}]
    assert "direct" in from_base[0][0][1]
    assert begun[1]
    assert from_base[1]
    cold = lengths.of_corpus(GRAPH.stage(stage("r1", "cold_start")))
    sampled = of_samples(stage("r1", "rejection"), 96)
    assert sampled.completion == pytest.approx(cold.completion, rel=0.05)


def test_reinforcement_moves_answers_to_the_kinds_that_are_right():
    node = stage("r1_zero", "grpo")
    (asked,) = lengths.asked_by(GRAPH.stage(node))
    sampled = lengths.of_samples(GRAPH, GRAPH.inputs(node)["policy"], asked, cap=56)
    after = of_samples(node, 56)
    assert after.completion > 1.2 * sampled.completion  # working out, where half of the base's answers guess
    assert after.prompt == pytest.approx(sampled.prompt, rel=0.05)


def test_the_cap_cuts():
    assert of_samples(stage("r1_zero", "grpo"), 10).completion <= 10


def test_a_published_model_has_learnt_nocorpus_of_a_world():
    (asked,) = lengths.asked_by(GRAPH.stage(stage("r1_zero", "grpo")))
    assert lengths.of_samples(GRAPH, stage("r1_zero", "grpo", scale="gpu"), asked, cap=56) is None


def test_worlds_of_programs_are_counted_without_running_any(monkeypatch):
    monkeypatch.setattr("encore.worlds.functions.Functions.verify", lambda *_: pytest.fail("ran a program"))
    node = stage("code", "grpo")
    (asked,) = lengths.asked_by(GRAPH.stage(node))
    task = typed.task(asked.task.said | {"operations": [2, 4]})  # not counted by an earlier test
    assert lengths.of_samples(GRAPH, node, replace(asked, task=task), cap=112).completion > 20


def test_roll_outs_go_on_from_the_prompts_of_their_data():
    labels, sampled = (
        of_node(GRAPH, stage("process_supervision", name, arm), Assumptions()).generation
        for name, arm in (("label_steps", "rollouts"), ("sample", "base-recipe"))
    )
    assert (labels.prompt, labels.mean) == (sampled.prompt, sampled.mean)
