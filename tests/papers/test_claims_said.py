"""What the recipes' claims say beside direction and margin: by one convention, and none of it fitted."""

import re

import pytest
from papers import GRAPH, RECIPES

from encore.recipe.claims import Claim
from encore.recipe.document import DIAL_SEEDS
from encore.recipe.graph import Node

CLAIMED = [name for name, recipe in RECIPES.items() if recipe.document.claims]
# Recipes with dials chosen on fewer than three seeds, or on seeds below 1000. Nothing may be added.
HASTY = {"dpo", "instructgpt", "iterative", "objectives"}
HASTY |= {"policy_gradient", "r1_zero", "rlaif"}
# The convention of encore/recipe/claims.py, at `smallest_effect`: the first pattern that a metric has.
CONVENTION = {
    r"^(updates|samples)_to/": None,  # a tenth of the budget, which is the recipe's
    r"^collapsed/|/crossed$": 0.2,
    r"/(gained|lost|ahead|behind|familiar)$": 0.02,
    r"perplexity": 0.05,
    r"log10_": 0.1,
    r"^sigmoid/midpoint$": 0.25,
    r"^sigmoid/": 0.02,
    r"gradient/angle$": 1,
    r"gradient/|/kl/\w+$": 0.02,
    r"/cut/|/regret$": 0.02,
    r"entropy$": 0.05,
    r"divergence$": 0.01,
    r"sampler_gap$": 0.0001,
    r"win_rate$": 0.05,
    r"^logratio/|/(forward_)?kl$": 0.5,
    r"(^|/)length(_\w+)?(/|$)": 1,
    r"/rewards/|/(language_consistency|readability|visible|special_cased)$": 0.02,
    r"/(called|malformed|backtracking|idling|trace_correct|other_rule|refused)$": 0.02,
    r"/calls$": 0.1,
    r"value_loss$": 0.1,
    r"token_std$": 0.01,
    r"gold|proxy|/reward$": 0.1,
    r"accuracy|/score$|pass@|maj@|format_rate|truncation_rate": 0.02,
}


def claims_of(recipe: str) -> list[Claim]:
    return list(RECIPES[recipe].document.claims.values())


@pytest.mark.parametrize("recipe", CLAIMED)
def test_the_smallest_effect_is_the_conventions_or_a_smaller_margin(recipe):
    for claim in claims_of(recipe):
        if claim.test.direction == "equal":
            continue
        metric, margin = claim.test.metric, claim.test.margin
        effect = next(value for pattern, value in CONVENTION.items() if re.search(pattern, metric))
        if effect is None:
            effect = budget(recipe, claim) / 10
        assert claim.test.matters == (min(effect, margin) if margin else effect), claim.id


def budget(recipe: str, claim: Claim) -> int:
    """How far the run of `against` goes: in optimizer steps, or in the completions of full rollouts."""
    arm, _, stage = str(claim.test.against).partition("/")
    args = GRAPH.config(Node(recipe, "cpu", arm, 0, stage, "stage"))["args"]
    return args["max_steps"] * (
        args["per_device_train_batch_size"] * args["gradient_accumulation_steps"]
        if claim.test.metric.startswith("samples_to/")
        else 1
    )


@pytest.mark.parametrize("recipe", CLAIMED)
def test_every_recipe_puts_a_claim_first(recipe):
    assert any(claim.primary for claim in claims_of(recipe))


def test_only_the_dials_known_of_were_chosen_on_few_seeds_or_judgeable_ones():
    """A list that may only get shorter: dials are chosen on three seeds or more, from 1000 on."""
    hasty = {
        name
        for name, recipe in RECIPES.items()
        for dial in recipe.document.dials
        if len(set(dial.seeds)) < 3 or min(dial.seeds) < DIAL_SEEDS
    }
    assert hasty == HASTY


@pytest.mark.parametrize("recipe", CLAIMED)
def test_no_seed_of_a_report_is_a_dials(recipe):
    for scale in RECIPES[recipe].scales:
        for report in ("report", "quickstart"):
            seeds = RECIPES[recipe].selection(scale, report, 64)[1]
            assert RECIPES[recipe].dial_seeds.isdisjoint(seeds)


@pytest.mark.parametrize("recipe", CLAIMED)
def test_a_gate_on_the_ratio_is_measured_on_the_base_arm_of_its_claim(recipe):
    gates = RECIPES[recipe].document.gates
    for claim in claims_of(recipe):
        for need in claim.needs:
            gate = gates[need.gate]
            if gate.metric == "max/ratio_deviation":
                assert gate.of.partition("/")[0] == claim.test.sides[1].place.partition("/")[0]
                assert (need.relation, need.bound) == (">=", 1e-6)
