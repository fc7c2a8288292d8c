"""Which policies are compared, and by what names."""

from dataclasses import replace

import toy_preferences as toy
from toy_run import changed

from analysis.numbers.table import final
from analysis.preferences import contenders

ONE = ("base-recipe",)


def test_a_policy_that_arms_share_is_one_contender(run, preferred):
    names = [one.name for one in preferred.policies]
    assert names == ["base", "sft", "base-recipe", "kl-none", "kl-strong", "few-labels", "dpo"]
    assert [one.name for one in preferred.policies if one.shared] == ["base", "sft"]
    assert contenders.baseline(run, preferred.policies).name == "sft"
    assert preferred.task == "heldout"


def test_of_many_policies_one_of_each_kind_is_shown_first(preferred):
    names = [one.name for one in contenders.representatives(preferred.policies, 4)]
    assert names == ["base", "sft", "base-recipe", "dpo"]
    assert contenders.representatives(preferred.policies, 99) == list(preferred.policies)


def test_a_checkpoint_that_all_arms_share_is_no_arms_end(run, table):
    evals = run.recipe.layers.content["evals"] | {"checkpoints": {"after": "ppo", "sft": "sft"}}
    turned = replace(changed(run, evals=evals), arms=toy.ARMS[:4])
    among = contenders.contenders(turned, final(table), "heldout")
    assert [one.name for one in among] == ["base-recipe", "sft", "kl-none", "kl-strong", "few-labels"]


def test_a_quickstart_of_one_arm_has_its_policies(run, table):
    one = replace(run, arms=("base-recipe",))
    few = contenders.contenders(one, final(table), "heldout")
    assert [(one.name, one.shared) for one in few] == [("base", True), ("sft", True), ("after", False)]
    evals = {key: value for key, value in run.recipe.layers.content["evals"].items() if key != "models"}
    unnamed = changed(run, evals=evals)
    assert contenders.baseline(unnamed, few).name == "sft"
    assert contenders.baseline(unnamed, []) is None
