"""A recipe in a folder: recipe.yaml, and a file for each further scale; a mistake names its file and keys."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from encore.errors import UserError
from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_all

NUMBER = {"what": "x", "value": 1.0, "source": "y"}


class Divided:
    """Recipe `paper` of the fixture `folder`, with scale `paper` in a file of its own."""

    def __init__(self, folder: Any) -> None:
        self.folder = folder
        self.main = folder.specs.pop("paper")
        self.scale = self.main["scales"].pop("paper")

    def load(self) -> dict[str, Any]:
        place = self.folder.path / "paper"
        place.mkdir(exist_ok=True)
        for name, content in (("recipe", self.main), ("paper", self.scale)):
            text = yaml.dump(copy.deepcopy(content), Dumper=yaml.CSafeDumper, sort_keys=False)
            (place / f"{name}.yaml").write_text(text)
        return self.folder.load()

    def mistakes(self) -> list[str]:
        """The lines by which the recipe is refused, from the name of the file on."""
        with pytest.raises(UserError) as error:
            self.load()
        return [line.removeprefix(f"{self.folder.path}/paper/") for line in error.value.lines]


@pytest.fixture
def divided(folder) -> Divided:
    return Divided(folder)


def test_a_folder_is_what_one_file_would_be(folder):
    node = Node("paper", "paper", "hot", 0, "grpo", "stage")
    whole = folder.load()
    (folder.path / "paper.yaml").unlink()
    parts = Divided(folder).load()
    assert list(parts) == ["paper", "tiny"]
    assert Graph(parts).lineage(node) == Graph(whole).lineage(node)


def test_a_row_is_of_the_scales_of_its_file_unless_it_names_others(divided):
    claim = divided.main["claims"]["lifts"]
    divided.main["claims"]["both"] = claim | {"scales": ["cpu", "paper"]}
    divided.scale["claims"] = {"large": claim}
    divided.main["published"], divided.scale["published"] = [NUMBER], [NUMBER, NUMBER | {"scales": ["cpu"]}]
    document = divided.load()["paper"].document
    scales = {name: claim.scales for name, claim in document.claims.items()}
    assert scales == {"lifts": ("cpu",), "both": ("cpu", "paper"), "large": ("paper",)}
    assert [number.scales for number in document.published] == [("cpu",), ("paper",), ("cpu",)]


def test_a_scale_adds_arms_and_deviations_and_changes_arms(divided):
    divided.main["deviations"] = [{"what": "a", "why": "b"}]
    divided.scale["deviations"] = [{"what": "c", "why": "d"}]
    divided.scale["arms"] = {
        "wide": {"about": "of this scale", "stages": {"grpo": {"args": {"epsilon": 0.4}}}},
        "hot": {"stages": {"grpo": {"args": {"temperature": 1.5}}}},
    }
    recipes = divided.load()
    recipe = recipes["paper"]
    assert (recipe.arms("cpu"), recipe.arms("paper")) == (
        ["base-recipe", "hot", "only-cpu"],
        ["base-recipe", "hot", "wide"],
    )
    assert [one.what for one in recipe.document.deviations] == ["a", "c"]
    hot = {
        scale: Graph(recipes).config(Node("paper", scale, "hot", 0, "grpo", "stage"))["args"]["temperature"]
        for scale in ("cpu", "paper")
    }
    assert hot == {"cpu": 1.2, "paper": 1.5}


def test_dials_are_recipes_of_one_file_and_presets_are_none(folder):
    (folder.path / "dials").mkdir()
    (folder.path / "presets").mkdir()
    (folder.path / "presets/data.yaml").write_text("{}")
    folder.load()
    (folder.path / "tiny.yaml").rename(folder.path / "dials/tiny.yaml")
    assert list(load_all(folder.path)) == ["paper", "tiny"]
    (folder.path / "tiny").mkdir()
    (folder.path / "tiny/recipe.yaml").write_text("")
    with pytest.raises(UserError, match=r"tiny.*: .*tiny.* has the same name; rename one of the two"):
        load_all(folder.path)


GRPO = ("stages", "grpo")
CLAIM = {
    "says": "it lifts",
    "source": "Fig. 1",
    "paper": "ours",
    "test": {"metric": "heldout/accuracy", "of": "base-recipe/after", "direction": "higher", "margin": 0.25},
}


@pytest.mark.parametrize(
    ("scale", "line"),
    [
        ({"titel": "x"}, "paper.yaml: titel: unknown key; valid: about, arms"),
        ({"stages": {"grpo": {"arg": {}}}}, 'paper.yaml: stages.grpo.arg: unknown key; did you mean "args"?'),
        ({"stages": {"grpp": {}}}, 'paper.yaml: stages.grpp: unknown stage; did you mean "grpo"?'),
        ({"like": "cqu"}, 'paper.yaml: like: unknown other scale "cqu"; did you mean "cpu"?'),
        (
            {"claims": {"large": CLAIM | {"test": {"margins": 1}}}},
            'paper.yaml: claims.large.test.margins: unknown key; did you mean "margin"?',
        ),
        (
            {"claims": {"large": CLAIM | {"test": CLAIM["test"] | {"of": "hott/after"}}}},
            'paper.yaml: claims.large.test.of: unknown arm "hott"; did you mean "hot"?',
        ),
        (
            {"claims": {"lifts": CLAIM}},
            "paper.yaml: claims.lifts: another file has lifts too; remove one of the two",
        ),
        (
            {"arms": {"hott": {"stages": {}}}},
            'paper.yaml: arms.hott: unknown arm at scale paper; did you mean "hot"?',
        ),
        (
            {"arms": {"wide": {"about": "", "stages": {"grpo": {"rn": "x"}}}}},
            'paper.yaml: arms.wide.stages.grpo.rn: unknown key; did you mean "run"?',
        ),
        (
            {"published": [NUMBER, NUMBER | {"metric": "held/accuracy", "at": "hot/after"}]},
            'paper.yaml: published[1].metric: unknown task at hot/after (scale paper) "held"; did you mean',
        ),
        ({"claims": []}, "paper.yaml: claims: expected a mapping, got a list"),
    ],
)
def test_a_mistake_in_the_file_of_a_scale(divided, scale, line):
    divided.main["published"] = [NUMBER]
    divided.scale |= scale
    assert divided.mistakes()[0].startswith(line)


@pytest.mark.parametrize(
    ("scale", "line"),
    [
        (
            {"rewards": {"acuracy": 1.0}},
            'paper.yaml: stages.grpo.rewards.acuracy: unknown reward; did you mean "accuracy"? (scale paper,',
        ),
        (
            {"args": {"num_generations": 1}},
            "paper.yaml: stages.grpo.args.num_generations: expected at least 2",
        ),
        (
            {"args": {"beta": None}},
            "paper.yaml: stages.grpo.args.beta: missing; it defines the objective, and TRL",
        ),
    ],
)
def test_what_layers_come_to_is_told_of_the_file_of_the_scale(divided, scale, line):
    divided.scale["stages"]["grpo"] |= scale
    assert divided.mistakes()[0].startswith(line)


def test_what_layers_come_to_is_told_of_recipe_yaml_where_it_says_it(divided):
    divided.main["stages"]["grpo"]["args"]["num_generations"] = 1
    assert divided.mistakes()[0].startswith(
        "recipe.yaml: stages.grpo.args.num_generations: expected at least 2"
    )


def test_files_that_cannot_be_read_are_told_together(divided):
    divided.load()
    for name in ("recipe", "paper"):
        (divided.folder.path / f"paper/{name}.yaml").write_text("title: [")
    with pytest.raises(UserError) as error:
        load_all(divided.folder.path)
    names = [Path(line.partition(": ")[0]).name for line in error.value.lines]
    assert names == ["recipe.yaml", "paper.yaml"]
