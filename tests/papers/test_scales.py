"""Every recipe has every scale but `small`, or says why it lacks one to who asks for it."""

from argparse import Namespace

import pytest
from papers import GRAPH, RECIPES

from encore.errors import UserError
from encore.forecast import plan
from encore.workflow import targets
from encore.workflow.choice import choice

SCALES = ("cpu", "gpu", "gpu-offline", "paper")
LACKING = [
    (name, scale) for name, recipe in RECIPES.items() for scale in SCALES if scale not in recipe.scales
]


def test_what_a_recipe_lacks_it_gives_a_reason_for():
    reasons = {(name, scale) for name, recipe in RECIPES.items() for scale in recipe.document.without}
    assert {(name, scale) for name, scale in reasons if scale in SCALES} == {*LACKING}
    assert ("tiny_lm", "gpu") in reasons


@pytest.mark.parametrize("target", ["plan", "preflight"])
def test_who_asks_for_it_reads_the_reason(target):
    why = RECIPES["policy_gradient"].layers.content["without"]["gpu"]
    chosen = choice(RECIPES, {"recipe": "policy_gradient", "scale": "gpu"})
    with pytest.raises(UserError) as error:
        targets.requested(GRAPH, chosen, Namespace(targets=[target]), "r1_zero")
    assert str(error.value) == f'--config scale: recipe policy_gradient has no scale "gpu": {why}'


def test_the_planner_says_it_too():
    with pytest.raises(UserError) as error:
        plan.make(GRAPH, {"recipe": "tiny_lm", "scale": "gpu"})
    why = RECIPES["tiny_lm"].layers.content["without"]["gpu"]
    assert str(error.value) == f'scale: recipe tiny_lm has no scale "gpu": {why}'
