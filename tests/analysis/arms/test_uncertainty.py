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
from evals.passk import variance


def test_a_base_model_that_all_seeds_share_is_named(run):
    assert "for this base model and these problems" in uncertainty.scope(run)
    assert uncertainty.shares_base(replace(run, scale="paper", arms=("base-recipe",)))  # from the Hub
    own = replace(run, name="tiny_lm", arms=("base-recipe",))
    recipe = own.recipe
    stages = {
        name: {k: v for k, v in stage.items() if k != "seed"}
        for name, stage in recipe.layers.content["stages"].items()
    }
    unpinned = replace(recipe, layers=Layers(recipe.layers.content | {"stages": stages}))
    assert "for these problems" in uncertainty.scope(
        replace(own, graph=Graph({**own.graph.recipes, "tiny_lm": unpinned}))
    )


def test_the_parts_of_the_variance_are_the_whole(run):
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


def test_without_samples_the_items_part_serves(run, tmp_path):
    table = final(collect(run))
    shown = uncertainty.parts(replace(run, root=tmp_path), table, levels(run, table))
    assert len(shown) == len(levels(run, table))


@pytest.mark.parametrize(
    ("models", "between_items", "between_seeds", "of_both"),
    [(5, 0.15, 0.04, 0.0), (5, 0.1, 0.04, 0.12), (1, 0.15, 0.0, 0.0)],
)
def test_known_variances_are_found_again(models, between_items, between_seeds, of_both):
    """Chances 0.5 + item + seed + item x seed; 30 items, 8 samples each; all drawn anew 600 times."""
    rng = np.random.default_rng(0)
    items, samples, draws = 30, 8, 600
    estimates, means = [], []
    for _ in range(draws):
        chance = 0.5 + rng.normal(0, between_items, items) + rng.normal(0, between_seeds, (models, 1))
        chance = np.clip(chance + rng.normal(0, of_both, (models, items)), 0, 1)
        correct = rng.random((models, items, samples)) < chance[:, :, None]
        each = [variance(model) for model in correct]
        within = {part: float(np.mean([one[part] for one in each])) for part in ("items", "sampling")}
        rates = correct.mean(axis=2)
        estimates.append(uncertainty.components(rates.mean(axis=1).tolist(), **within, rates=rates))
        means.append(rates.mean())
    parts = pd.DataFrame(estimates).mean()
    one = 0.25 - between_items**2 - between_seeds**2 - of_both**2  # mean of p (1 - p)
    assert parts.problems == pytest.approx(between_items**2 / items, rel=0.1)
    assert parts.sampling == pytest.approx(one / samples / items / models, rel=0.05)
    if models > 1:
        assert parts.seeds == pytest.approx(between_seeds**2 / models + of_both**2 / items / models, rel=0.1)
    assert parts.sum() == pytest.approx(np.var(means), rel=0.15)
