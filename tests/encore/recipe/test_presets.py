"""`use: NAME` lays a preset below the mapping that uses it."""

import pytest

from encore.errors import UserError
from encore.recipe import presets
from encore.recipe.load import load_all, load_sound

SHARED = {
    "wide": {"epsilon": 0.4, "temperature": 1.5},
    "cool": {"temperature": 0.5},
    "nested": {"args": {"beta": 0.1}, "rewards": {"format": 1.0}},
}


@pytest.mark.parametrize(
    ("content", "laid"),
    [
        ({"use": "wide"}, {"epsilon": 0.4, "temperature": 1.5}),
        ({"use": "wide", "epsilon": 0.2}, {"epsilon": 0.2, "temperature": 1.5}),
        ({"use": "wide", "epsilon": None}, {"temperature": 1.5}),
        ({"use": "cool", "epsilon": None}, {"temperature": 0.5, "epsilon": None}),  # of a layer below
        ({"use": ["wide", "cool"]}, {"epsilon": 0.4, "temperature": 0.5}),
        ({"use": "nested", "args": {"beta": 0.2, "use": "cool"}},
         {"args": {"beta": 0.2, "temperature": 0.5}, "rewards": {"format": 1.0}}),
        ([{"a": {"use": "cool"}}], [{"a": {"temperature": 0.5}}]),
    ],
)  # fmt: skip
def test_a_preset_lies_below_the_keys_of_its_mapping(content, laid):
    assert presets.laid({"stage": content}, SHARED) == {"stage": laid}


def test_a_preset_does_not_change_by_its_use():
    presets.laid({"a": {"use": "nested", "args": {"beta": 0.2}}}, SHARED)
    assert SHARED["nested"]["args"] == {"beta": 0.1}


@pytest.mark.parametrize("name", ["wied", 3, None, {"a": "wide"}, [["wide"]]])
def test_a_preset_that_does_not_exist_is_one_line_with_the_nearest_name(folder, name):
    (folder.path / "presets").mkdir()
    (folder.path / "presets/optimizers.yaml").write_text("wide: {epsilon: 0.4}\n")
    folder.set("paper", "stages/grpo/args/use", name)
    line = f"{folder.path}/paper.yaml: stages.grpo.args.use: unknown preset "
    assert folder.mistake().startswith(line)
    if name == "wied":
        assert folder.mistake() == f'{line}"wied"; did you mean "wide"?'


def test_what_a_preset_says_counts_as_written_out(folder):
    (folder.path / "presets").mkdir()
    (folder.path / "presets/optimizers.yaml").write_text("plain: {beta: 0.001, epsilon: 0.3}\n")
    for key in ("beta", "epsilon"):
        folder.remove("paper", f"stages/grpo/args/{key}")
    folder.set("paper", "stages/grpo/args/use", "plain")
    args = folder.load()["paper"].layers.content["stages"]["grpo"]["args"]
    assert (args["beta"], args["epsilon"]) == (0.001, 0.3)
    assert "use" not in args


def test_a_recipe_that_lies_elsewhere_may_use_them(folder, tmp_path_factory):
    (folder.path / "presets").mkdir()
    (folder.path / "presets/optimizers.yaml").write_text("plain: {beta: 0.002}\n")
    folder.load()
    own = tmp_path_factory.mktemp("own") / "mine.yaml"
    text = (folder.path / "paper.yaml").read_text()
    own.write_text(text.replace("beta: 0.001", "use: plain"))
    assert own.read_text() != text
    recipes, broken = load_sound(folder.path, own)
    assert not broken
    assert recipes["mine"].layers.content["stages"]["grpo"]["args"]["beta"] == 0.002


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- a", "data.yaml: expected a mapping from names of presets"),
        ("wide: 3", "data.yaml: wide: expected a mapping, which is merged below"),
        ("wide: {use: wied}", 'data.yaml: wide.use: unknown preset "wied"; did you mean "wide"?'),
        ("wide: {a: [", "data.yaml: line 2, column 1: not YAML"),
    ],
)
def test_a_mistake_in_a_file_of_presets(folder, text, line):
    folder.load()
    (folder.path / "presets").mkdir()
    (folder.path / "presets/data.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        load_all(folder.path)
    assert str(error.value).startswith(f"{folder.path}/presets/{line}")


def test_a_name_stands_in_one_file_of_presets(folder):
    folder.load()
    (folder.path / "presets").mkdir()
    for name in ("data", "optimizers"):
        (folder.path / f"presets/{name}.yaml").write_text("wide: {}")
    with pytest.raises(
        UserError, match=r"optimizers\.yaml: wide: .*data\.yaml has a preset of this name; rename"
    ):
        load_all(folder.path)


def test_a_preset_may_use_others(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "whole: {args: {use: part, epsilon: 0.3}}\npart: {epsilon: 0.2, beta: 0.0}"
    )
    assert presets.read_presets(tmp_path)["whole"] == {"args": {"epsilon": 0.3, "beta": 0.0}}
