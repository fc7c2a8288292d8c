"""Numbers as a reader wants them."""

import math

import pytest

from analysis.numbers import means


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (0.8, "heldout/accuracy", "0.800"),
        (-0.0213, "heldout/accuracy", "\N{MINUS SIGN}0.021"),
        (39.26, "heldout/length", "39.3"),
        (39.26, "heldout/length/difficulty=3", "39.3"),
        (52.5, "updates_to/accuracy=0.5", "52.5"),
        (0.000412, "mean/clip_fraction", "0.000412"),
        (-3.3849, "mean/log10_clip_fraction", "\N{MINUS SIGN}3.38"),
        (0.000412, "auc/completions/clipped_ratio", "0.000412"),
        (0.5174, "heldout/gold_at_kl/2.5", "0.517"),
        (math.nan, "heldout/accuracy", means.DASH),
    ],
)
def test_numbers_for_a_reader(value, metric, text):
    assert means.number(value, metric) == text


@pytest.mark.parametrize(("p", "text"), [(0.0284, "p = 0.028"), (3e-5, "p < 0.001"), (math.nan, "")])
def test_p_values_for_a_reader(p, text):
    assert means.p_value(p) == text


@pytest.mark.parametrize(("seconds", "text"), [(9.4, "9 s"), (192, "3 min 12 s"), (7500, "2 h 05 min")])
def test_durations(seconds, text):
    assert means.duration(seconds) == text
