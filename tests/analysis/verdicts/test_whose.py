"""Verdicts by whose the claims are, and the sentence that a reversed one needs."""

from dataclasses import replace
from pathlib import Path

import pytest
from papers import GRAPH

from analysis import publish
from analysis.verdicts import claims, reversals, whose
from encore.errors import UserError
from encore.recipe.graph import Graph
from encore.recipe.layers import Layers
from encore.recipe.recipe import Recipe

RECORDS = Path(__file__).parents[3] / "results/published"
RECIPE = GRAPH.recipes["code"]
VERDICTS = claims.read_verdicts(RECORDS / "code-cpu/claims.csv")


def changed(claim: str, recipe: Recipe = RECIPE, **keys: object) -> Recipe:
    """The recipe, by default code, in which a claim has other keys; None removes one."""
    content = recipe.layers.content
    other = {key: value for key, value in {**content["claims"][claim], **keys}.items() if value is not None}
    spec = content | {"claims": content["claims"] | {claim: other}}
    return Recipe(recipe.name, Layers(spec), recipe.files)


def test_verdicts_are_counted_by_whose_the_claims_are():
    ours = [v for v in VERDICTS if RECIPE.document.claims[v.id].paper == "ours"]
    groups = whose.of_recipe(RECIPE, VERDICTS)
    assert groups.ours == ours
    assert groups.findings == [*groups.own, *groups.others, *groups.ours]
    assert f"; our own: {whose.counts(ours)}" in groups.told()
    owned = whose.of_recipe(changed("rl-gets-more-right", paper="2207.01780"), VERDICTS)
    assert [v.id for v in owned.own] == ["rl-gets-more-right"]
    assert owned.told().startswith(whose.counts(owned.own))


def test_a_sanity_check_is_in_no_other_count():
    groups = whose.of_recipe(changed("rl-gets-more-right", kind="sanity"), VERDICTS)
    assert [v.id for v in groups.sanity] == ["rl-gets-more-right"]
    assert not set(groups.sanity) & set(groups.findings)
    assert groups.told().endswith(f"; {whose.SANITY}: 1 of 1")
    failed = [replace(groups.sanity[0], word=claims.VERDICTS[-1])]
    assert whose.passed(failed) == "0 of 1"
    assert whose.passed([]) == ""


CLAIM = "partial-credit-teaches-more"


def test_a_reversed_claim_needs_its_sentence():
    verdicts = [replace(v, word=reversals.REVERSED) if v.id == CLAIM else v for v in VERDICTS]
    reversals.check_reversals(RECIPE, verdicts)
    assert reversals.causes(RECIPE, verdicts)[CLAIM].startswith("Our base model often writes")
    silent = changed(CLAIM, world=None)
    with pytest.raises(UserError) as error:
        reversals.check_reversals(silent, verdicts)
    assert f"code/recipe.yaml: claims.{CLAIM}.world: missing; the claim came out" in str(error.value)


def test_a_record_with_a_reversed_claim_and_no_sentence_is_not_published(monkeypatch):
    """Neither is a record judged anew, nor is the page of all records written."""
    name, claim = "spurious_rewards", "random-lifts-accuracy"
    recipes = {**GRAPH.recipes, name: changed(claim, GRAPH.recipes[name], world=None)}
    with pytest.raises(UserError, match=rf"claims\.{claim}\.world: missing"):
        publish.judged_anew(RECORDS / f"{name}-cpu", Graph(recipes))
    monkeypatch.setattr(publish, "load_all", lambda _: recipes)
    monkeypatch.setattr(Path, "write_text", lambda *_, **__: pytest.fail("something was written"))
    with pytest.raises(UserError, match=rf"claims\.{claim}\.world: missing"):
        publish.index(RECORDS.parents[1])


def test_a_report_of_a_reversed_claim_without_its_sentence_is_written():
    assert reversals.causes(changed(CLAIM, world=None), VERDICTS).get(CLAIM, "") == ""
