"""Gold and proxy reward along training and best-of-n."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import toy_preferences as toy
from toy_run import changed

from analysis.preferences import (
    over_optimization,
    reward_fits,
)
from analysis.preferences.over_optimization import Track


def test_the_laws_of_training_and_of_best_of_n_are_recovered(preferred):
    fits = preferred.tables["over_optimization"].set_index(["by", "arm", "reward", "form"]).sort_index()
    for arm in ("base-recipe", "kl-none", "few-labels"):
        row = fits.loc[("RL", arm, "gold", "rl")]
        alpha, beta = toy.ALPHA.get(arm, toy.ALPHA_ELSE), toy.BETA.get(arm, toy.BETA_ELSE)
        assert (row.alpha, row.beta) == pytest.approx((alpha, beta), abs=0.08)
        assert row.alpha_low <= row.alpha <= row.alpha_high
        assert row.highest_at_kl == pytest.approx(math.exp(2 * (alpha / beta - 1)), rel=0.15)
    far = fits.loc[("RL", "kl-none", "gold")].r2_held_out
    assert far["rl"] > 0.95 > max(far["bon"], far["linear"], far["cubic"])
    assert fits.loc[("RL", "kl-none", "proxy", "linear")].alpha == pytest.approx(toy.PROXY, abs=0.03)
    drawn = fits.loc[("best-of-n", "base-recipe", "gold", "bon")]
    assert (drawn.alpha, drawn.beta) == pytest.approx(toy.BON)
    assert drawn.largest_kl == pytest.approx(reward_fits.best_of_n_kl(8))
    shown = over_optimization.fits_shown(preferred.tables["over_optimization"])
    assert len(shown) == 2 * (4 + 2)  # rewards; four arms with ppo, the initial policy by two proxies


def test_arms_that_share_a_run_have_one_track(run, table):
    again = table[table.arm == "kl-none"].assign(arm="base-recipe")
    shared = pd.concat([table[table.arm == "kl-none"], again])
    tracks = over_optimization.of_training(run, shared)
    assert [(track.arm, track.reward) for track in tracks] == [
        ("base-recipe", "gold"),
        ("base-recipe", "proxy"),
    ]


def test_of_two_trainings_the_one_from_the_initial_policy_is_shown(run, table):
    again = {
        "ppo_2": {
            **run.recipe.layers.content["stages"]["ppo"],
            "needs": {"policy": "ppo", "reward_model": "reward_model"},
        }
    }
    later = table[table.node == "ppo"].assign(node="ppo_2", value=-1.0)
    one_arm = replace(run, arms=("base-recipe",))
    both = changed(one_arm, stages=run.recipe.layers.content["stages"] | again)
    shown = over_optimization.of_training(both, pd.concat([table, later]))
    for one, plain in zip(shown, over_optimization.of_training(one_arm, table), strict=True):
        assert np.array_equal(one.gain, plain.gain)


@pytest.mark.parametrize(
    ("gain", "highest"),
    [
        (lambda d: d * (-0.2 - 0.1 * d), "0"),
        (lambda d: d * (1.2 - 0.3 * d), "4"),
        (lambda d: d * (1.2 - 0.1 * d), "beyond 16"),
        (lambda d: d * (0.2 + 0.1 * d), "rises on"),
    ],
)
def test_where_a_reward_is_highest(gain, highest):
    d = np.linspace(0.5, 4, 20)
    none = np.full(len(d), np.nan)
    seeds = tuple((d, gain(d) + shift * d) for shift in (-0.01, 0.01))
    frame = over_optimization.fits([Track("a", "best-of-n", "gold", d, gain(d), none, none, seeds)])
    assert over_optimization.fits_shown(frame)["highest at KL"].tolist() == [highest]


def test_over_optimisation_is_drawn_as_gain(preferred, palette):
    figure = over_optimization.draw(preferred.trained, palette)
    assert over_optimization.draw([], palette) is None
    gold, proxy = figure.axes
    track = next(track for track in preferred.trained if (track.arm, track.reward) == ("few-labels", "gold"))
    assert any(np.array_equal(line.get_ydata(), track.gain) for line in gold.lines)
    assert abs(track.gain[0]) < 0.2 < track.gain.max()
    assert track.gain[-1] < 0 < min(line.get_ydata()[-1] for line in proxy.lines if len(line.get_ydata()) > 2)
