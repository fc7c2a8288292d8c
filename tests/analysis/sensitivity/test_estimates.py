"""Gains by protocol against sums written out, and what the intervals mean."""

from itertools import product
from statistics import mean

import numpy as np
import pytest

from analysis.sensitivity.estimates import BEST, by_choice, by_protocol, spread
from analysis.sensitivity.rates import Rates
from encore.recipe.sensitivity import Protocol
from evals.passk import resamples

PROTOCOLS = [
    Protocol(*chosen) for chosen in product(("turn", "begun"), ("plain",), (1.0, 0.0, 0.6), ("lean", "hf"))
]
PROBLEMS = 23


@pytest.fixture(scope="module")
def rates():
    rng = np.random.default_rng(5)
    before, after = (rng.integers(0, 5, (len(PROTOCOLS), PROBLEMS)) / 4 for _ in range(2))
    return Rates(PROTOCOLS, before, np.minimum(after + 0.25, 1))


def gain(rates, protocol, problem):
    row = PROTOCOLS.index(protocol)
    return rates.after[row][problem] - rates.before[row][problem]


def bounds(values):
    """The percentile interval of a mean over problems, resample by resample."""
    means = []
    for counts in resamples(PROBLEMS):
        drawn = [value for value, count in zip(values, counts, strict=True) for _ in range(int(count))]
        means.append(mean(drawn))
    return np.quantile(means, [0.025, 0.975])


def test_every_protocol_against_sums_written_out(rates):
    frame = by_protocol(rates)
    assert [Protocol(*row[:4]) for row in frame.itertuples(index=False)] == PROTOCOLS
    for protocol, row in zip(PROTOCOLS, frame.to_dict("records"), strict=True):
        own = [gain(rates, protocol, problem) for problem in range(PROBLEMS)]
        first = [gain(rates, PROTOCOLS[0], problem) for problem in range(PROBLEMS)]
        assert row["gain"] == pytest.approx(mean(own))
        assert row["gain"] == pytest.approx(row["after"] - row["before"])
        if protocol != PROTOCOLS[0]:
            assert row["more"] == pytest.approx(mean(own) - mean(first))
    for number in (1, 7):
        own = [gain(rates, PROTOCOLS[number], problem) for problem in range(PROBLEMS)]
        more = [own[problem] - gain(rates, PROTOCOLS[0], problem) for problem in range(PROBLEMS)]
        row = frame.loc[number]
        assert [row.gain_low, row.gain_high] == pytest.approx(list(bounds(own)))
        assert [row.more_low, row.more_high] == pytest.approx(list(bounds(more)))
    assert frame.loc[0, ["more", "more_low", "more_high"]].isna().all()


def test_every_choice_against_sums_written_out(rates):
    frame = by_choice(rates)
    levels = {"template": ["turn", "begun"], "temperature": ["1.0", "0.0", "0.6"], "backend": ["lean", "hf"]}
    found: dict[str, list[str]] = {}
    for choice, level in zip(frame.choice[:-1], frame.level[:-1], strict=True):
        found.setdefault(choice, []).append(level)
    assert found == levels  # there is one wording
    for row in frame[frame.choice != BEST].to_dict("records"):
        of_level = [p for p in PROTOCOLS if str(getattr(p, row["choice"])) == row["level"]]
        assert row["protocols"] == len(of_level)
        own = [mean(gain(rates, p, problem) for p in of_level) for problem in range(PROBLEMS)]
        assert row["gain"] == pytest.approx(mean(own))
        first = getattr(PROTOCOLS[0], row["choice"])
        if row["level"] == str(first):
            assert np.isnan(row["more"])
            continue
        more = [
            mean(
                gain(rates, p, problem) - gain(rates, p._replace(**{row["choice"]: first}), problem)
                for p in of_level
            )
            for problem in range(PROBLEMS)
        ]
        assert row["more"] == pytest.approx(mean(more))
        if row["level"] in ("begun", "0.6"):
            assert [row["more_low"], row["more_high"]] == pytest.approx(list(bounds(more)))


def test_each_model_by_its_own_best(rates):
    row = by_choice(rates).iloc[-1]
    assert row.choice == BEST
    assert row.before == max(map(mean, rates.before))
    assert row.after == max(map(mean, rates.after))
    assert row.gain == pytest.approx(row.after - row.before)
    assert row.gain_low < row.gain < row.gain_high


def test_differences_are_paired_by_problem(rates):
    """Protocols that move every problem's gain alike differ for certain, however much the problems vary."""
    shifted = np.tile(np.random.default_rng(0).random(PROBLEMS), (len(PROTOCOLS), 1))
    after = shifted + np.arange(len(PROTOCOLS))[:, None] / 100
    frame = by_protocol(Rates(PROTOCOLS, np.zeros_like(after), after))
    assert frame.more[1:].to_list() == pytest.approx([i / 100 for i in range(1, len(PROTOCOLS))])
    assert frame.more_low[1:].to_list() == pytest.approx(frame.more[1:].to_list())
    assert (frame.gain_high - frame.gain_low).min() > 0.1


def test_a_grid_that_lacks_protocols_compares_those_that_it_has():
    """As while the evaluations of one backend are still to come for one template."""
    there = [
        Protocol("a", "own", 1.0, "hf"),
        Protocol("b", "own", 1.0, "hf"),
        Protocol("b", "own", 1.0, "lean"),
    ]
    after = np.array([[0.5, 0.5], [1.0, 0.5], [0.0, 0.5]])
    frame = by_choice(Rates(there, np.zeros((3, 2)), after)).set_index(["choice", "level"])
    assert frame.more[("template", "b")] == pytest.approx(0.25)  # by hf alone: no a by lean
    assert frame.more[("backend", "lean")] == pytest.approx(-0.5)


def test_spread(rates):
    frame = by_protocol(rates)
    lowest, highest = spread(frame)
    assert lowest["gain"] == min(frame.gain)
    assert highest["gain"] == max(frame.gain)
