"""Gao et al.'s forms: known laws are recovered, and foretell what other forms do not."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.preferences import reward_fits as fits

D = np.linspace(0, 5, 61)
BON = D * (1.3 - 0.4 * D)
RL = D * (1.1 - 0.6 * np.log(np.maximum(D, 1e-300)))


@settings(max_examples=25)
@given(st.floats(0.1, 5), st.floats(-2, 3))
def test_weights_are_recovered(alpha, beta):
    for form, gain in (
        ("bon", D * (alpha - beta * D)),
        ("rl", D * (alpha - beta * np.log(np.maximum(D, 1e-9)))),
    ):
        fitted = fits.fit(form, D, gain)  # the origin, of infinite slope, is left out
        assert (fitted.alpha, fitted.beta) == pytest.approx((alpha, beta), abs=1e-9)
        assert fitted(D[1:]) == pytest.approx(gain[1:], abs=1e-8)


def test_noise_moves_them_little():
    noise = np.random.default_rng(0).normal(0, 0.05, len(D))
    assert fits.fit("rl", D, RL + noise).weights == pytest.approx((1.1, 0.6), abs=0.04)
    assert fits.fit("bon", D, BON + noise).weights == pytest.approx((1.3, 0.4), abs=0.04)


@pytest.mark.parametrize(("form", "gain"), [("bon", BON), ("rl", RL)])
def test_the_top_is_where_the_curve_is_highest(form, gain):
    grid = np.linspace(0.01, 6, 60_000)
    fitted = fits.fit(form, D, gain)
    assert fitted.top == pytest.approx(grid[np.argmax(fitted(grid))], abs=1e-3)
    assert math.isnan(fits.fit(form, D, D).top)  # rises on
    # what rounding leaves of no bend, and bends too weak for a float to say at which d or which KL
    for beta in (0.0, 1e-16, 1e-4, 1 / 400):
        assert math.isnan(fits.Fit("rl", (1.0, beta)).top)
    assert math.isnan(fits.fit("linear", D, gain).top)


@pytest.mark.parametrize(("form", "gain"), [("bon", BON), ("rl", RL)])
def test_the_true_form_foretells_the_far_half_and_the_others_do_not(form, gain):
    held = {name: fits.held_out(name, D, gain) for name in fits.FORMS}
    assert held[form] == pytest.approx(1)
    others = [value for name, value in held.items() if name not in (form, "cubic")]
    assert max(others) < 0.9
    assert form == "bon" or held["cubic"] < 0.9  # of a parabola a cubic is a case


def test_held_out_is_fitted_to_the_near_half_alone():
    spoilt = BON.copy()
    spoilt[D > 2.5] += 7.0
    near = fits.fit("bon", D[D <= 2.5], BON[D <= 2.5])
    assert fits.held_out("bon", D, spoilt) == pytest.approx(fits.r_squared(near, D[D > 2.5], spoilt[D > 2.5]))
    wrong = np.where(D > 2.5, -BON, BON)
    assert fits.held_out("bon", D, wrong) < 0


def test_too_few_points_settle_nothing():
    assert fits.fit("rl", np.array([0.0, 1.0]), np.array([0.0, 1.0])) is None
    assert fits.fit("bon", np.array([2.0, 2.0, 2.0]), np.ones(3)) is None
    assert fits.fit("linear", np.array([0.0, math.nan]), np.ones(2)) is None
    assert math.isnan(fits.held_out("bon", np.array([0.1, 3.0, 4.0]), np.ones(3)))


def test_best_of_n_divergence():
    assert fits.best_of_n_kl(1) == 0
    assert fits.best_of_n_kl(16) == pytest.approx(math.log(16) - 15 / 16)
    # of n uniform draws the best has density n x^(n-1): its divergence, by quadrature
    x = (np.arange(200_000) + 0.5) / 200_000
    for n in (2, 8):
        density = n * x ** (n - 1)
        assert np.mean(density * np.log(density)) == pytest.approx(fits.best_of_n_kl(n), abs=1e-3)
