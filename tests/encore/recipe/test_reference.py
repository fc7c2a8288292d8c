"""The reference of recipes and the schema for editors are those of the models."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from encore.recipe import reference

ROOT = Path(__file__).parents[3]
AGAIN = "write it anew: python -m encore.recipe.reference"


def test_both_files_are_those_of_the_models():
    assert (ROOT / reference.PAGE).read_text(encoding="utf-8") == reference.page(), AGAIN
    assert (ROOT / reference.SCHEMA).read_text(encoding="utf-8") == reference.editors_schema(), AGAIN


@pytest.fixture(scope="module")
def validator():
    rules = json.loads((ROOT / reference.SCHEMA).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(rules)
    return Draft202012Validator(rules)


def test_an_editor_finds_no_mistake_in_the_recipes(validator):
    every = {*(ROOT / "recipes").glob("*/*.yaml")} - {*(ROOT / "recipes").rglob("*registered.yaml")}
    paths = [path for path in every if path.parent.name != "presets"]
    assert len(paths) > 60
    for path in paths:
        content = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        assert not [error.message for error in validator.iter_errors(content)], path


def test_an_editor_finds_an_unknown_key_of_a_claim_and_of_a_scale(validator):
    content = yaml.load((ROOT / "recipes/r1_zero/gpu.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    next(iter(content["claims"].values()))["margins"] = 8
    content["sceds"] = 3
    found = {
        word
        for error in validator.iter_errors(content)
        for word in ("margins", "sceds")
        if word in error.message
    }
    assert found == {"margins", "sceds"}


def test_an_editor_finds_an_unknown_key_of_a_stage(validator):
    content = yaml.load((ROOT / "recipes/r1_zero/recipe.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    content["stages"]["grpo"]["global_bach"] = 8
    (error,) = validator.iter_errors(content)
    assert "global_bach" in error.message


@pytest.mark.slow
def test_each_key_has_the_comment_at_its_field():
    page = reference.page()
    assert "| `seed` | a whole number at least 0 at most 1000000 |  | seed of a pinned stage, which" in page
    assert "| `alpha` | a number more than 0 |  | the adapters' product is multiplied by alpha/rank |" in page
