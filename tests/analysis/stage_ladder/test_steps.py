from dataclasses import replace

from toy_run import changed

from analysis.stage_ladder.steps import made, steps


def test_steps_are_those_whose_arm_runs(run):
    names = ["base", "Zero", "Dev1", "Dev2", "Dev3", "R1"]
    assert [step.name for step in steps(run)] == names
    assert steps(run)[1].at == "zero/after"
    assert [step.name for step in steps(replace(run, arms=("base-recipe",)))] == [names[0], *names[2:]]
    assert steps(replace(run, arms=("zero",))) == []  # one alone is no ladder
    assert steps(changed(run, stage_ladder=None)) == []


def test_what_a_step_is_made_of(run, ladder):
    found = made(run, ladder, 1)
    own = {name: [node.name for node in one.own] for name, one in found.items()}
    assert own == {"base": ["pretrain"], "Zero": ["reason"], "Dev1": ["cold"], "Dev2": ["reason"],
                   "Dev3": ["sift", "again"], "R1": ["all"]}  # fmt: skip
    assert {node.seed for node in found["R1"].of} == {0, 1}  # the base model is pinned
    assert found["Dev3"].after == ("base", "Dev1", "Dev2")
    assert found["Zero"].after == ("base",)


def test_the_policy_went_through_stages_that_trained_it(run, ladder):
    trained = {name: [node.name for node in one.trained] for name, one in made(run, ladder, 0).items()}
    assert trained == {"base": [], "Zero": ["reason"], "Dev1": ["cold"], "Dev2": ["reason"],
                       "Dev3": ["again"], "R1": ["all"]}  # fmt: skip


def test_stages_between_two_steps_are_the_later_ones(run, ladder):
    few = [step for step in ladder if step.name in ("base", "Dev2", "R1")]
    found = made(run, few, 0)
    assert [node.name for node in found["Dev2"].trained] == ["cold", "reason"]
    assert [node.name for node in found["R1"].own] == ["sift", "again", "all"]
