"""Reward against divergence, and sweeps of one setting."""

import numpy as np
import pytest
from toy_run import changed

from analysis.preferences import (
    frontier,
    sweeps,
)


def test_sweeps_are_of_arms_that_differ_in_one_number(run):
    assert sweeps.sweeps(run) == {
        "ppo.args.kl_coef": ["kl-none", "base-recipe", "kl-strong"],
        "sample.problems": ["few-labels", "base-recipe"],
    }
    assert frontier.short("ppo.args.kl_coef") == "ppo kl_coef"
    arms = run.recipe.layers.content["arms"]
    other = arms | {"few-labels": arms["few-labels"] | {"evals": {"tasks": {"heldout": {"samples": 3}}}}}
    assert sweeps.sweeps(changed(run, arms=other)) == sweeps.sweeps(run)


def test_the_frontier_stands_where_the_evaluations_say(run, numbers, preferred, palette):
    places = frontier.places(numbers, preferred.task, preferred.policies)
    by_name = {place.contender.name: place for place in places}
    for arm in ("kl-none", "dpo"):
        here = numbers[(numbers.arm == arm) & (numbers.node == "after")].groupby("metric").value.mean()
        assert by_name[arm].kl.value == pytest.approx(here["heldout/kl"])
        assert by_name[arm].rewards["gold"].value == pytest.approx(here["heldout/gold"])
    figure = frontier.draw(places, sweeps.sweeps(run), palette)
    gold, proxy = figure.axes
    lines = [
        line.get_xdata() for line in gold.lines if line.get_linestyle() != "-" and len(line.get_xdata()) > 1
    ]
    swept = [by_name[arm].kl.value for arm in ("kl-none", "base-recipe", "kl-strong")]
    assert any(np.array_equal(x, swept) for x in lines)
    assert {text.get_text() for text in gold.texts} == {"base", "sft"}
    assert (gold.get_ylabel(), proxy.get_ylabel()) == ("gold reward", "proxy reward")
    assert frontier.draw(places[:2], {}, palette) is None
