"""The table of arms."""

from analysis.arms.levels import levels


def test_the_base_is_shown_once_with_its_best_template(run, table):
    arms = levels(run, table)
    base = arms[(arms.arm == "base-recipe") & (arms.checkpoint == "before")]
    assert dict(zip(base.task, base.best_template, strict=True)) == {"heldout": True, "heldout-plain": False}
    assert not len(arms[(arms.arm == "random") & (arms.checkpoint == "before")])
    assert set(arms[arms.checkpoint == "after"].over) == {"seeds"}
    assert set(base.over) == {"items"}
