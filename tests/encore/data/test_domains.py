"""Prompts of several domains: exact shares, an order fixed by the seed, every prompt once a lap."""

from collections import Counter
from types import SimpleNamespace

import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from encore.data.domains import mixed, needed, turns


@given(st.lists(st.integers(1, 9), min_size=2, max_size=4), st.integers(0, 5))
def test_every_rollout_has_just_its_shares_where_they_are_whole(counts, rollouts):
    names, size = "abcd"[: len(counts)], sum(counts)
    shares = {name: count / size for name, count in zip(names, counts, strict=True)}
    if any(round(share, 4) != share for share in shares.values()):
        return  # not what a recipe would write
    order = list(turns(shares, rollouts * size))
    for start in range(0, len(order), size):
        assert Counter(order[start : start + size]) == dict(zip(names, counts, strict=True))


@given(
    st.lists(st.floats(0.01, 1), min_size=2, max_size=4).map(lambda w: [round(x / sum(w), 6) for x in w]),
    st.integers(1, 300),
)
def test_no_domain_is_ever_far_from_its_share(shares, n):
    named = {name: share for name, share in zip("abcd", shares, strict=False) if share}
    counts = Counter(turns(named, n))
    for name, share in named.items():
        assert abs(counts[name] - share / sum(named.values()) * n) < len(named)


def problems(name: str, size: int) -> Dataset:
    return Dataset.from_dict({"prompt": [f"{name}{i}" for i in range(size)], "answer": [name] * size})


def order(seed: int = 0, general: int = 3) -> list[str]:
    pools = {"reasoning": problems("r", 12), "general": problems("g", general)}
    return mixed(pools, {"reasoning": 0.75, "general": 0.25}, 32, seed)["prompt"][:]


def test_each_lap_has_every_prompt_once_in_a_new_order():
    reasoning = [prompt for prompt in order() if prompt[0] == "r"]
    assert len(reasoning) == 24
    assert set(reasoning[:12]) == set(reasoning[12:]) == {f"r{i}" for i in range(12)}
    assert reasoning[:12] != reasoning[12:]


def test_the_order_depends_on_the_seed_and_on_no_other_domain():
    assert order() == order()
    assert order() != order(seed=1)
    assert [p for p in order() if p[0] == "r"] == [p for p in order(general=2) if p[0] == "r"]


def test_rows_know_their_domain():
    rows = mixed({"a": problems("a", 2), "b": problems("b", 2)}, {"a": 0.5, "b": 0.5}, 4, 0)
    assert all(row["domain"] == row["answer"] == row["prompt"][0] for row in rows)


@pytest.mark.parametrize(
    ("steps", "iterations", "window", "prompts"), [(8, 1, 1, 8), (9, 1, 1, 12), (8, 2, 2, 8)]
)
def test_how_many_prompts_the_steps_take(steps, iterations, window, prompts):
    args = SimpleNamespace(
        max_steps=steps,
        steps_per_generation=4,
        num_iterations=iterations,
        gradient_accumulation_steps=window,
        generation_batch_size=16,
        num_generations=4,
    )
    assert needed(args) == prompts
