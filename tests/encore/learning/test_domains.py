"""A prompt's advantages come from its own group: what another domain is given moves none of them."""

import re

import hand_made
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from encore.errors import UserError
from encore.learning.completions import by_domain
from encore.learning.trainer import Method
from encore.rewards.domains import routed

G = hand_made.GROUP
# no two nearly alike, whose spread would be rounding
REWARDS = st.lists(st.integers(-6, 6).map(lambda halves: halves / 2), min_size=G, max_size=G)


def given_rewards(values: list[float]):
    """A reward function that gives its rows these values, whatever they are."""
    return lambda prompts, completions, completion_ids=None, **columns: values


@pytest.fixture(scope="module", params=["group", "none", "leave_one_out", "raw", "best", "batch"])
def mixed(request, tmp_path_factory):
    """A trainer with rewards of two domains: TRL's advantages, or the stage's."""
    own = request.param if request.param in ("leave_one_out", "raw", "best") else None
    scaled = "group" if own else request.param
    built = hand_made.trainer(
        tmp_path_factory.mktemp("trainer"), Method(lean=True, advantage=own), scale_rewards=scaled, beta=0.0
    )
    built.reward_weights = torch.tensor([0.5, 2.0])
    return request.param, built


def advantages(built, reasoning: list[float], general: list[float]) -> tuple[torch.Tensor, list[dict]]:
    """Of a rollout of one group of each domain; and its rows as they are recorded."""
    functions = [
        routed(given_rewards(reasoning), "accuracy", "reasoning"),
        routed(given_rewards(general), "gold", "general"),
    ]
    built.reward_funcs, built.reward_func_names = functions, [one.__name__ for one in functions]
    rows = [
        {"prompt": "<user>1+2=<assistant>", "question": "1+2=", "answer": "3", "domain": domain}
        for domain in ("reasoning", "general")
        for _ in range(G)
    ]
    batch, records = built.parts.rollouts.round(rows)
    return batch.advantages, records


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(REWARDS, REWARDS, REWARDS)
def test_advantages_are_of_the_own_domains_rewards_alone(mixed, reasoning, general, other):
    kind, built = mixed
    if kind == "batch":
        return  # refused before a stage starts, for the reason that the next test has
    first, rows = advantages(built, reasoning, general)
    again, _ = advantages(built, reasoning, other)
    assert first[:G].tolist() == again[:G].tolist()
    plain = 0.5 * torch.tensor(reasoning)
    expected = {
        "group": (plain - plain.mean()) / (plain.std() + 1e-4),
        "none": plain - plain.mean(),
        "leave_one_out": (plain - plain.mean()) * G / (G - 1),
        "raw": plain,
        "best": torch.where(plain == plain.max(), plain, 0.0),
    }[kind]
    torch.testing.assert_close(first[:G], expected, rtol=1e-4, atol=1e-5)
    for row, value in zip(rows, [*reasoning, *general], strict=True):
        name = {"reasoning": "accuracy", "general": "gold"}[row["domain"]]
        assert row["rewards"] == {name: value}


def test_a_spread_over_the_batch_would_carry_them_over(mixed):
    kind, built = mixed
    reasoning = [0.0, 1.0, 0.0, 1.0]
    flat, _ = advantages(built, reasoning, [0.0, 0.0, 0.0, 0.0])
    wide, _ = advantages(built, reasoning, [0.0, 9.0, 0.0, 9.0])
    assert bool((flat - wide)[:G].abs().max() > 0.1) == (kind == "batch")


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"domain": "reasonin"}, 'unknown domain "reasonin"; did you mean "reasoning"?'),
        ({"domain": "poetry"}, 'unknown domain "poetry"; valid: general, reasoning'),
        ({}, 'unknown domain ""; valid: general, reasoning'),
    ],
)
def test_a_prompt_of_an_unknown_domain_is_told_in_one_line(mixed, columns, says):
    """It would have no reward at all: none of the functions is for it."""
    built = mixed[1]
    advantages(built, [0.0, 1.0] * 2, [0.0, 1.0] * 2)
    rows = [{"prompt": "<user>1+2=<assistant>", "question": "1+2=", "answer": "3", **columns}] * G
    with pytest.raises(UserError, match=rf"^a prompt is of the {re.escape(says)}$"):
        built.parts.rollouts.round(rows)


def row(domain: str, reward: float, rewards: dict, tokens: int = 4, eos: bool = True) -> dict:
    return {"domain": domain, "reward": reward, "rewards": rewards, "tokens": tokens, "eos": eos}


def test_measures_of_each_domain():
    rows = [
        row("reasoning", 1.5, {"accuracy": 1.0, "format": 0.5}, tokens=6),
        row("reasoning", 0.5, {"accuracy": 0.0, "format": 0.5}, eos=False),
        row("general", 2.0, {"gold": 2.0, "format": 1.0}),
        row("general", 2.0, {"gold": 2.0, "format": None}),
    ]
    found = by_domain(rows, 2)
    assert found["accuracy/reasoning"] == 0.5
    assert found["length/correct/reasoning"] == 6
    assert found["frac_reward_zero_std/reasoning"] == 0
    assert found["frac_reward_zero_std/general"] == 1
    assert found["completions/clipped_ratio/reasoning"] == 0.5
    assert found["completions/mean_length/reasoning"] == 5
    assert found["reward/general"] == found["rewards/gold/mean"] == 2
    assert found["rewards/format/mean"] == pytest.approx(2 / 3)
    assert "accuracy/general" not in found
    assert by_domain([{"rewards": {"accuracy": 1.0}}] * 2, 2) == {}
