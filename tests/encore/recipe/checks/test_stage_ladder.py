"""Section `stage_ladder`; a mistake is one line."""

import pytest

from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_sound

BASE = {"name": "base", "at": "base-recipe/before"}
LAST = {"name": "Zero", "at": "base-recipe/after"}
HOT = {"name": "Hot", "at": "hot/after"}


@pytest.mark.parametrize(
    "steps",
    [
        [BASE, LAST],
        [BASE, LAST, HOT],  # a branch: built on the base alone
        [LAST, HOT],
        [BASE, {"name": "small", "at": "only-cpu/after"}],  # no step at scale paper
    ],
)
def test_sound(folder, steps):
    folder.set("paper", "stage_ladder", steps)
    assert [step.model_dump() for step in folder.load()["paper"].document.stage_ladder] == steps


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([BASE], "stage_ladder: "),
        ("hot/after", 'stage_ladder: expected a list, got the text "hot/after"'),
        ([BASE, {"name": "Zero"}], "stage_ladder[1].at: missing"),
        ([BASE, LAST | {"stage": "grpo"}], "stage_ladder[1].stage: unknown key; valid: at, name"),
        ([BASE, LAST | {"name": " "}], "stage_ladder[1].name: expected some text"),
        ([BASE, LAST | {"name": "base"}], 'stage_ladder[1].name: "base" is written twice'),
        ([BASE, BASE | {"name": "again"}], 'stage_ladder[1].at: "base-recipe/before" is written twice'),
        ([BASE, HOT | {"at": "hott/after"}], 'stage_ladder[1].at: unknown arm "hott"; did you mean "hot"?'),
        ([BASE, HOT | {"at": "hot"}], 'stage_ladder[1].at: expected arm/checkpoint or arm/stage, got "hot"'),
        (
            [BASE, {"name": "x", "at": "hot/grpo"}],
            'stage_ladder[1].at: unknown checkpoint of arm hot "grpo"; valid: after, before',
        ),
        ([BASE, {"name": "x", "at": "frontier/y"}], 'stage_ladder[1].at: unknown arm "frontier"'),
        (
            [LAST, HOT, BASE],
            "stage_ladder[2].at: Zero, which stands above it, is built on it (scale cpu); write base first",
        ),
    ],
)  # fmt: skip
def test_mistake(folder, steps, message):
    folder.set("paper", "stage_ladder", steps)
    assert message in folder.mistake()


def test_no_lineage_depends_on_it(folder):
    node = Node("paper", "cpu", "base-recipe", 0, "grpo", "stage")
    before = Graph(folder.load()).lineage(node)
    folder.set("paper", "stage_ladder", [BASE, LAST])
    assert Graph(folder.load()).lineage(node) == before


def test_a_step_on_a_recipe_with_a_mistake_is_that_mistake(folder):
    folder.set("paper", "stage_ladder", [BASE, LAST])
    folder.load()
    (folder.path / "tiny.yaml").write_text("title: [")
    recipes, broken = load_sound(folder.path)
    assert not recipes
    assert broken["paper"].lines[0].startswith(f"{folder.path / 'paper.yaml'}: it builds on recipe tiny")
