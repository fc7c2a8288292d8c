"""Colours and lines of the arms."""

from analysis.page import style


def test_an_arm_has_one_colour_in_every_report(run, quick):
    palette = style.colours(run.recipe.arms("cpu"))
    assert len(set(palette.values())) == 6
    assert style.colours(quick.recipe.arms("cpu"))["random"] == palette["random"]


def test_no_two_of_many_arms_look_alike():
    arms = [f"arm-{i}" for i in range(18)]
    lines = style.dashes(arms)
    assert len({(colour, lines[arm]) for arm, colour in style.colours(arms).items()}) == 18
