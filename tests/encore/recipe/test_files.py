"""Files of recipes that cannot be read or are called otherwise, and the folders they lie in."""

import pytest

from encore.errors import UserError
from encore.recipe.load import load, load_all, load_sound


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "line 2, column 1: not YAML: "),
        ("a:\n\tb: 1", "line 2, column 1: not YAML: found character"),
        ("title: x\ntitle: y", "line 2: title: written twice (first in line 1)"),
        ("arms:\n  no: {}", "line 2: arms.no: YAML reads this key as False, not text; quote it"),
        ("arms:\n  010: {}", "line 2: arms.010: YAML reads this key as 8, not text; quote it"),
        ("", "a recipe is a mapping of keys; this file is empty"),
        ("- a", "a recipe is a mapping of keys; this file is a list or a text"),
        ("schema: 99", "schema: written for recipe schema 99; this Encore reads 2; update Encore"),
        (
            "schema: 1",
            "schema: written for recipe schema 1; this Encore reads 2; write found for expected, and",
        ),
        ("schema: 2", "title: missing"),
        ("a:\n  margin: .nan", "line 2: a.margin: expected a finite number, got .nan"),
        ("margin: -.inf", "line 1: margin: expected a finite number, got -.inf"),
        (b"\xff", "not UTF-8 text (byte 0)"),
    ],
)
def test_file_that_is_no_recipe(tmp_path, text, message):
    path = tmp_path / "x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: {message}")
    assert len(error.value.lines) == (1 if message != "title: missing" else 6)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.yml", "a recipe's file ends in .yaml; rename it"),
        ("Dr-GRPO.yaml", 'a recipe has a name of lower-case letters, digits and "_"; rename it'),
        ("everything.yaml", "a reserved name; call the recipe something else"),
        ("report.yaml", "a reserved name; call the recipe something else"),
    ],
)
def test_names_of_recipe_files(folder, name, message):
    (folder.path / name).write_text("")
    with pytest.raises(UserError) as error:
        folder.load()
    assert str(error.value) == f"{folder.path / name}: {message}"


def test_folder_without_recipes(tmp_path):
    with pytest.raises(UserError, match="expected those of Encore, in a clone or installed"):
        load_all(tmp_path)


def test_missing_file(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        load(tmp_path / "none.yaml")


def test_the_recipes_of_the_repository_are_valid():
    load_all()


def test_a_half_written_recipe_breaks_none_but_those_that_build_on_it(folder):
    folder.load()
    (folder.path / "draft.yaml").write_text("title: [")
    recipes, broken = load_sound(folder.path)
    assert set(recipes) == {"paper", "tiny"}
    assert "draft.yaml: line 2" in str(broken["draft"])
    assert len(broken["draft"].lines) == 1
    with pytest.raises(UserError, match=r"draft\.yaml"):
        load_all(folder.path)

    (folder.path / "tiny.yaml").write_text("title: [")
    recipes, broken = load_sound(folder.path)
    assert not recipes
    assert "it builds on recipe tiny, which has a mistake: " in str(broken["paper"])
