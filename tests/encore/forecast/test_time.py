"""The seconds of a job: sampling, learning, and what goes on at once."""

from dataclasses import replace

import pytest
import torch
from papers import GRAPH
from test_model_size import hub

from encore.forecast import time
from encore.forecast.hardware import GPUS, Assumptions, change
from encore.forecast.job import Generation, Job, Training
from encore.forecast.model_size import of_model
from encore.forecast.plan import of_job
from encore.forecast.work import of_node
from encore.recipe.graph import Node


@pytest.mark.parametrize("share", [0.05, 0.3, 0.7, 0.95])
def test_lengths_have_the_mean_that_is_assumed(share):
    theta = time.scale_of(share * 1000, 1000)
    draws = torch.distributions.Exponential(1 / theta).sample((200_000,)).clamp(max=1000)
    assert float(draws.mean()) == pytest.approx(share * 1000, rel=0.02)


def test_the_longest_completion_and_not_the_sum_decides_a_small_rollout():
    policy, assumed = of_model(hub("Qwen/Qwen2.5-7B")), Assumptions()
    few = Generation(8, 8, 8192, 1000, 100, "vllm")
    many = replace(few, completions=64, rollout=64)
    one, eight = (time.of_generation(policy, drawn, 1, GPUS["H100"], assumed) for drawn in (few, many))
    assert one < eight < 2.5 * one


def test_a_rate_that_is_given_replaces_the_one_from_bandwidth():
    drawn = Generation(100, 100, 1000, 500, 100, "vllm")
    policy = of_model(hub("Qwen/Qwen2.5-7B"))
    fixed = change(Assumptions(), {"rate": 1000})
    assert time.of_generation(policy, drawn, 2, GPUS["H100"], fixed) == pytest.approx(25)


def test_each_job_of_an_engine_waits_for_its_start():
    """Qwen2.5-1.5B answers 500 problems in less time than the engine needs until it can sample."""
    node = Node("dr_grpo", "gpu", "base-recipe", 0, "before", "eval")
    job = of_node(GRAPH, node, Assumptions())
    short, long = (
        of_job(job, GPUS["H100"], change(Assumptions(), {"start": seconds})).hours for seconds in (60, 90)
    )
    assert (long - short) * 3600 == pytest.approx(30)
    by_trl = replace(job, generation=replace(job.generation, engine="hf"))
    assert (
        of_job(by_trl, GPUS["H100"], change(Assumptions(), {"start": 60})).hours
        == of_job(by_trl, GPUS["H100"], change(Assumptions(), {"start": 90})).hours
    )


def test_a_server_that_samples_ahead_works_while_the_trainer_learns():
    training = Training(steps=1000, batch=8, rows=1, mean=512, longest=1024, computed=1024, half=True)
    learns = Job("grpo", "grpo", 1, policy=hub("Qwen/Qwen2.5-1.5B"), server=1, training=training)
    samples = replace(learns, training=None, generation=Generation(4096, 512, 2048, 600, 100, "server"))
    whole = replace(learns, generation=samples.generation)
    ahead = replace(whole, generation=replace(whole.generation, ahead=True))
    learning, sampling, in_turn, overlapped = (
        of_job(job, GPUS["H100"], Assumptions()).hours for job in (learns, samples, whole, ahead)
    )
    assert max(learning, sampling) < overlapped < learning + sampling < in_turn


def test_rows_with_the_completions_of_others_are_read_by_policy_and_reference():
    """KTO estimates its KL by two forward passes, beside six of the policy and two of the reference."""
    job = of_node(GRAPH, Node("dpo", "gpu", "base-recipe", 0, "dpo", "stage"), Assumptions())
    both = replace(job, training=replace(job.training, mismatched=True))
    policy = of_model(job.policy)
    assert time.operations(both, policy) == pytest.approx(12 / 8 * time.operations(job, policy))
