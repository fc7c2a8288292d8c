"""The expected curve of a scale; a mistake is one line."""

import pytest

from encore.errors import UserError

CURVE = {
    "of": "base-recipe/grpo",
    "metric": "accuracy",
    "curve": {"10": 0.2, "60": 0.7},
    "margin": 0.1,
    "source": "dial seeds 1000 to 1002",
}


def test_a_scale_alone_has_it(folder):
    folder.set("paper", "scales/cpu/expected", CURVE)
    scales = folder.load()["paper"].document.scales
    assert scales["cpu"].expected.curve == {"10": 0.2, "60": 0.7}
    assert scales["paper"].expected is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"of": "base-recip/grpo"}, '.of: unknown arm at scale cpu "base-recip"; did you mean "base-recipe"'),
        ({"of": "base-recipe/grop"}, '.of: unknown stage of arm base-recipe "grop"; did you mean "grpo"?'),
        ({"of": "base-recipe"}, '.of: unknown stage of arm base-recipe ""'),
        ({"curve": {"10": 0.2}}, ".curve: "),
        ({"curve": {"10": 0.2, "later": 0.7}}, ".curve"),
        ({"curve": {"10": 0.2, "60": "high"}}, ".curve.60: expected a number"),
        ({"margin": 0}, ".margin: expected more than 0"),
        ({"source": " "}, ".source: expected some text"),
        ({"curv": {}}, '.curv: unknown key; did you mean "curve"?'),
    ],
)
def test_a_mistake_is_one_line(folder, changes, message):
    folder.set("paper", "scales/cpu/expected", CURVE | changes)
    with pytest.raises(UserError) as error:
        folder.load()
    assert f"scales.cpu.expected{message}" in str(error.value)
    assert len(error.value.lines) == 1
