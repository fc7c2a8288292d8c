"""With one seed: a claim's difference over problems, against independent code, and where there is none."""

import itertools
import json
import random
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from toy_run import changed, draw_only

from analysis import report
from analysis.numbers.table import collect, final
from analysis.verdicts import one_seed
from analysis.verdicts.build import build
from analysis.verdicts.claims import tally
from evals import metrics

GAIN = {"metric": "heldout/accuracy", "of": "base-recipe/after", "against": "base-recipe/before"}


def rows(rates, samples=4, seed=0):
    """The rows of an evaluation, in which problem i is answered right with probability `rates[i]`."""
    rng = random.Random(seed)
    lists = [[rng.random() < rate for _ in range(samples)] for rate in rates]
    return [row_of(item, correct) for item, correct in enumerate(lists)]


def row_of(item, correct):
    n, asked = len(correct), {"question": f"{item} + 0", "answer": str(item), "difficulty": None}
    votes = [str(item) if right else None for right in correct]
    said = {"completions": [f"it is {vote}" for vote in votes], "votes": votes, "correct": correct}
    same = {"tokens": [9] * n, "truncated": [False] * n, "formatted": [True] * n}
    return {"task": "heldout", "item": item, **asked, **said, **same}


@pytest.fixture
def alone(run, tmp_path):
    """The toy run with one arm and one seed, whose evaluations a test writes."""
    shutil.copytree(run.root, tmp_path / "run")
    return replace(run, arms=run.arms[:1], seeds=run.seeds[:1], root=tmp_path / "run")


def write(run, seed=0, **sides):
    """Write the evaluations of these checkpoints as their jobs would, from the rows of heldout."""
    for checkpoint, drawn in sides.items():
        node = run.graph.owner(run.evaluation("base-recipe", checkpoint, seed))
        result = {"checkpoint": checkpoint, "digest": "sha256:0", "seed": seed}
        tasks = {"heldout": metrics.summary(drawn, (1, 4))}
        run.sentinel(node).write_text(json.dumps(result | {"tasks": tasks}))
        lines = "".join(json.dumps(row) + "\n" for row in drawn)
        (run.folder(node) / f"{checkpoint}.samples.jsonl").write_text(lines)


def over_problems(run, *claims):
    asked = changed(run, claims=list(claims) or [GAIN], gates=None)
    return build(asked, final(collect(asked))).over_problems


def test_the_interval_is_that_of_every_resample_of_few_problems(alone):
    before, after = rows([0.1, 0.5, 0.4, 0.7, 0.2, 0.6], seed=1), rows([0.9, 0.6, 0.5, 0.9, 0.7, 0.2], seed=2)
    write(alone, before=before, after=after)
    difference = over_problems(alone)["c0"]
    gaps = [np.mean(a["correct"]) - np.mean(b["correct"]) for a, b in zip(after, before, strict=True)]
    means = [np.mean(drawn) for drawn in itertools.product(gaps, repeat=len(gaps))]
    low, high = np.quantile(means, [0.025, 0.975])
    assert difference.value == pytest.approx(np.mean(gaps))
    assert (difference.low, difference.high) == pytest.approx((low, high), abs=1.01 / (6 * 4))  # one sample
    assert difference.problems == 6


def test_the_interval_is_students_where_problems_are_many_and_pairing_makes_it_narrow(alone):
    rates = np.random.default_rng(0).beta(0.3, 0.3, 500).tolist()
    before, after = rows(rates, seed=1), rows([min(rate + 0.08, 1.0) for rate in rates], seed=2)
    write(alone, before=before, after=after)
    difference = over_problems(alone)["c0"]
    sides = [np.array([np.mean(row["correct"]) for row in side]) for side in (after, before)]
    paired = stats.ttest_rel(*sides).confidence_interval(0.95)
    assert (difference.low, difference.high) == pytest.approx(tuple(paired), abs=0.003)
    unpaired = stats.ttest_ind(*sides).confidence_interval(0.95)
    assert difference.high - difference.low < 0.7 * (unpaired.high - unpaired.low)


def test_problems_are_matched_by_their_number_not_their_place(alone):
    before, after = rows([0.1, 0.9] * 20, seed=1), rows([0.2, 1.0] * 20, seed=2)
    write(alone, before=before, after=after)
    in_order = over_problems(alone)["c0"]
    write(alone, before=before[::-1])
    assert over_problems(alone)["c0"] == in_order


@pytest.mark.parametrize(
    "wrong",
    [
        lambda drawn: drawn[:-1],  # a problem is missing
        lambda drawn: [*drawn[:-1], drawn[-1] | {"item": 99}],
        lambda drawn: [*drawn[:-1], drawn[-1] | {"question": "another"}],
        lambda drawn: [*drawn, drawn[0]],  # a problem is there twice
    ],
)
def test_other_problems_on_one_side_give_no_statement(alone, wrong):
    before, after = rows([0.3] * 12, seed=1), rows([0.8] * 12, seed=2)
    write(alone, before=before, after=after)
    assert over_problems(alone)
    write(alone, before=wrong(before))
    assert over_problems(alone) == {}


def test_samples_of_another_evaluation_than_the_numbers_give_no_statement(alone):
    write(alone, before=rows([0.3] * 12, seed=1), after=rows([0.8] * 12, seed=2))
    node = alone.graph.owner(alone.evaluation("base-recipe", "after", 0))
    path = alone.folder(node) / "after.samples.jsonl"
    lines = "".join(json.dumps(row) + "\n" for row in rows([0.4] * 12, seed=3))
    path.write_text(lines)
    assert over_problems(alone) == {}
    path.unlink()
    assert over_problems(alone) == {}


def test_a_number_that_is_no_mean_over_problems_has_no_statement(alone):
    write(alone, before=rows([0.3] * 12, seed=1), after=rows([0.8] * 12, seed=2))
    means = [{"metric": "heldout/pass@4"}, {"metric": "heldout/maj@4"}, {"metric": "heldout/format_rate"}]
    others = [
        {"metric": "heldout/length_correct"},  # a mean over right samples
        {"metric": "last_fifth/accuracy", "of": "base-recipe/grpo", "against": "base-recipe/grpo"},
        {"metric": "heldout/accuracy", "against": None},  # nothing is compared
    ]
    claims = [{key: value for key, value in (GAIN | own).items() if value} for own in (*means, *others)]
    assert [*over_problems(alone, *claims)] == ["c0", "c1", "c2"]


def test_claims_on_one_evaluation_share_its_metrics(alone, monkeypatch):
    write(alone, before=rows([0.3] * 12, seed=1), after=rows([0.8] * 12, seed=2))
    computed, plain = [], metrics.ratios
    monkeypatch.setattr(one_seed, "ratios", lambda *args: computed.append(args) or plain(*args))
    names = ("accuracy", "accuracy", "format_rate")
    assert len(over_problems(alone, *(GAIN | {"metric": f"heldout/{name}"} for name in names))) == 3
    assert len(computed) == 2  # before and after


def test_with_two_seeds_nothing_is_said(alone):
    for seed in (0, 1):
        write(alone, seed, before=rows([0.3] * 12, seed=1), after=rows([0.8] * 12, seed=2))
    assert over_problems(replace(alone, seeds=(1,)))
    assert over_problems(replace(alone, seeds=(0, 1))) == {}


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (0.1, 0.9, "these weights: higher by 0."),
        (0.9, 0.1, "these weights: lower by 0."),
        (0.5, 0.5, "these weights: no clear difference, "),
    ],
)
def test_the_direction_is_said_only_if_the_interval_shows_it(alone, before, after, text):
    write(alone, before=rows([before] * 64, seed=1), after=rows([after] * 64, seed=2))
    said = str(over_problems(alone)["c0"])
    assert said.startswith(text)
    assert said.endswith(" on 64 problems")


def test_the_page_and_the_summary_say_it_and_no_verdict_changes(alone, tmp_path, monkeypatch):
    draw_only(set(), monkeypatch)
    write(alone, before=rows([0.2] * 256, seed=1), after=rows([0.7] * 256, seed=2))
    page = tmp_path / "report.html"
    report.command(alone, page, "report")
    numbers = final(collect(alone))
    judged = build(alone, numbers)
    said = str(judged.over_problems["rl-lifts-accuracy"])
    text = page.read_text()
    assert text.count(said) == 2  # in the claim's row, and where it opens
    assert "One run of one seed." in text
    assert "a verdict over seeds needs 8" in text
    assert said in (tmp_path / "report/summary.txt").read_text()
    assert set(tally(judged.last)) <= {"open", "not tested"}
    assert "higher by" not in (tmp_path / "report/claims.csv").read_text()
