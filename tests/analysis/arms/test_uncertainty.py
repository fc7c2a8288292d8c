"""What the report says of its intervals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.arms import uncertainty
from analysis.arms.levels import levels
from analysis.numbers import means
from analysis.numbers.run import read_lines
from analysis.numbers.table import collect, final, measured
from encore.recipe.graph import Graph
from encore.recipe.layers import Layers
from encore.recipe.shared import Shared
from evals.passk import variance


def own_bases(run):
    """The run whose base models follow the seed."""
    recipe = run.graph.recipes["tiny_lm"]
    stages = {
        name: {k: v for k, v in stage.items() if k != "seed"}
        for name, stage in recipe.layers.content["stages"].items()
    }
    unpinned = replace(recipe, layers=Layers(recipe.layers.content | {"stages": stages}))
    return replace(run, graph=Graph({**run.graph.recipes, "tiny_lm": unpinned}))


def once(run):
    """The run as an old record has it: one base model, and one set of problems for all seeds."""
    return replace(run, graph=Graph(run.graph.recipes, Shared({("tiny_lm", "pretrain"): 0}, problems=True)))


def test_what_all_seeds_share_is_named(run):
    assert "for this base model and these problems: every seed starts from the" in uncertainty.scope(
        once(run)
    )
    assert "Intervals over seeds are for this base model: every seed starts from" in uncertainty.scope(run)
    assert uncertainty.shares_base(replace(run, scale="paper", arms=("base-recipe",)))  # from the Hub


def test_seeds_with_nothing_in_common_are_replications_from_nothing(run):
    assert uncertainty.scope(own_bases(run)) == (
        "Intervals over seeds are about the whole way from pretraining on: every seed has a base model, "
        "training and held-out problems of its own."
    )
    assert uncertainty.fixed(own_bases(run)) == "each seed with a base model and problems of its own"


def test_the_parts_of_the_variance_are_the_whole_where_all_seeds_answer_the_same(run):
    run = once(run)
    table = final(collect(run))
    shown = uncertainty.parts(run, table, levels(run, table)).set_index("checkpoint")
    shares = ["problems", "sampling", "seeds"]
    before = shown.loc["base-recipe/before"]  # one model
    items, sampling = (
        measured(table, "base-recipe/before", f"heldout/variance/{part}").value[0]
        for part in ("items", "sampling")
    )
    assert before["standard error"] == f"{(items + sampling) ** 0.5:.3f}"
    assert before.problems == f"{items / (items + sampling):.0%}"
    assert before.seeds == means.DASH
    after = shown.loc["base-recipe/after"]
    assert sum(int(share.rstrip("%")) for share in after[shares]) == pytest.approx(100, abs=1)
    rows = measured(table, "base-recipe/after", "heldout/accuracy")
    sampling = measured(table, "base-recipe/after", "heldout/variance/sampling").value.mean()
    seeds = max(rows.value.var() - sampling, 0) / 3
    files = [run.root / path.replace(".json", ".samples.jsonl") for path in rows.source]
    read = [[row for row in read_lines(file) if row["task"] == "heldout"] for file in files]
    common = np.cov([[np.mean(row["correct"]) for row in model] for model in read])
    problems = max(np.mean([common[0, 1], common[0, 2], common[1, 2]]), 0) / 8
    assert after["standard error"] == f"{(problems + sampling / 3 + seeds) ** 0.5:.3f}"
    assert after.problems == f"{problems / (problems + sampling / 3 + seeds):.0%}"


def test_the_parts_of_the_variance_are_the_whole_where_each_seed_has_problems_of_its_own(run):
    table = final(collect(run))
    shown = uncertainty.parts(run, table, levels(run, table)).set_index("checkpoint").loc["base-recipe/after"]
    rows = measured(table, "base-recipe/after", "heldout/accuracy")
    items, sampling = (
        measured(table, "base-recipe/after", f"heldout/variance/{part}").value.mean()
        for part in ("items", "sampling")
    )
    total = max(rows.value.var() - items - sampling, 0) / 3 + (items + sampling) / 3
    assert shown["standard error"] == f"{total**0.5:.3f}"
    assert shown.problems == f"{items / 3 / total:.0%}"


def test_without_samples_the_items_part_serves(run, tmp_path):
    table = final(collect(run))
    shown = uncertainty.parts(replace(run, root=tmp_path), table, levels(run, table))
    assert len(shown) == len(levels(run, table))


@pytest.mark.parametrize(
    ("models", "between_items", "between_seeds", "of_both", "crossed"),
    [
        (5, 0.15, 0.04, 0.0, True),
        (5, 0.1, 0.04, 0.12, True),
        (1, 0.15, 0.0, 0.0, True),
        (5, 0.15, 0.08, 0.0, False),
        (5, 0.1, 0.08, 0.12, False),
        (1, 0.15, 0.0, 0.0, False),
    ],
)
def test_known_variances_are_found_again(models, between_items, between_seeds, of_both, crossed):
    """Chances 0.5 + item + seed + item x seed; 30 items, 8 samples each; all drawn anew 600 times.

    crossed: all models answer the same items.
    """
    rng = np.random.default_rng(0)
    items, samples, draws = 30, 8, 600
    estimates, means = [], []
    for _ in range(draws):
        by_item = rng.normal(0, between_items, (1 if crossed else models, items))
        chance = 0.5 + by_item + rng.normal(0, between_seeds, (models, 1))
        chance = np.clip(chance + rng.normal(0, of_both, (models, items)), 0, 1)
        correct = rng.random((models, items, samples)) < chance[:, :, None]
        each = [variance(model) for model in correct]
        within = {part: float(np.mean([one[part] for one in each])) for part in ("items", "sampling")}
        rates = correct.mean(axis=2)
        accuracies = rates.mean(axis=1).tolist()
        estimates.append(uncertainty.components(accuracies, **within, rates=rates if crossed else None))
        means.append(rates.mean())
    parts = pd.DataFrame(estimates).mean()
    one = 0.25 - between_items**2 - between_seeds**2 - of_both**2  # mean of p (1 - p)
    of_seeds = between_seeds**2 / models
    if crossed:
        of_problems, of_seeds = between_items**2 / items, of_seeds + of_both**2 / items / models
    else:
        of_problems = (between_items**2 + of_both**2) / items / models
    assert parts.problems == pytest.approx(of_problems, rel=0.1)
    assert parts.sampling == pytest.approx(one / samples / items / models, rel=0.05)
    if models > 1:
        assert parts.seeds == pytest.approx(of_seeds, rel=0.1)
    assert parts.sum() == pytest.approx(np.var(means), rel=0.15)
