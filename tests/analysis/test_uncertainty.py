"""What the report says of its intervals."""

from dataclasses import replace

import pytest

from analysis import tables, uncertainty
from analysis.claims import measured
from analysis.table import collect, final


def test_a_base_model_that_all_seeds_share_is_named(run):
    assert "for this base model and these problems" in uncertainty.scope(run)
    assert uncertainty.shares_base(replace(run, scale="paper", arms=("base-recipe",)))  # from the Hub
    own = replace(run, name="tiny_lm", arms=("base-recipe",))
    recipe = own.recipe
    stages = {
        name: {k: v for k, v in stage.items() if k != "seed"} for name, stage in recipe.spec["stages"].items()
    }
    unpinned = replace(recipe, spec=recipe.spec | {"stages": stages})
    assert "for these problems" in uncertainty.scope(
        replace(own, recipes={**own.recipes, "tiny_lm": unpinned})
    )


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (1, "no interval"),
        (3, "range of the differences. It is called 95%; with 3 seeds it covers the truth in about 75%"),
        (5, "(Hesterberg 2015). It is called 95%; with 5 seeds it covers the truth in about 92%"),
        (20, "in about 95%"),
    ],
)
def test_coverage_is_that_of_so_many_seeds(n, words):
    assert words in uncertainty.coverage(n)


def test_the_parts_of_the_variance_are_the_whole(run):
    table = final(collect(run))
    shown = uncertainty.parts(run, table, tables.arms(run, table)).set_index("checkpoint")
    shares = ["problems", "sampling", "seeds"]
    assert shown.seeds["base-recipe/before"] == tables.DASH  # one model
    after = shown.loc["base-recipe/after"]
    assert sum(int(share.rstrip("%")) for share in after[shares]) == pytest.approx(100, abs=1)
    rows = measured(table, "base-recipe/after", "heldout/accuracy")
    items = measured(table, "base-recipe/after", "heldout/variance/items").value.mean()
    sampling = measured(table, "base-recipe/after", "heldout/variance/sampling").value.mean()
    seeds = max(rows.value.var() - sampling, 0) / 3
    assert after["standard error"] == f"{(items + sampling / 3 + seeds) ** 0.5:.3f}"
    assert after.problems == f"{items / (items + sampling / 3 + seeds):.0%}"
