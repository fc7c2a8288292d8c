"""Reading recipes, and the fields of config dataclasses that are read without importing them."""

import dataclasses
import subprocess
import sys
import types
import typing

import pytest

from encore.errors import UserError
from encore.recipe.schema import stage_rules
from encore.recipe.trl_fields import fields

NUMBER = {"what": "x", "value": 1.0, "source": "y"}


def test_arms_of_a_scale(folder):
    recipe = folder.load()["paper"]
    assert recipe.arms("cpu") == ["base-recipe", "hot", "only-cpu"]
    assert recipe.arms("paper") == ["base-recipe", "hot"]


def test_a_claim_is_read_as_one_row_with_its_id_and_its_test(folder):
    claim = folder.specs["paper"]["claims"]["lifts"]
    folder.set("paper", "claims/last", claim | {"primary": True})
    first, last = folder.load()["paper"].spec["claims"]
    assert first == {"id": "lifts", "says": "it lifts", "source": "Fig. 1", **claim["test"]}
    assert last == first | {"id": "last", "primary": True}


def test_a_group_of_published_numbers_is_read_as_its_rows(folder):
    folder.set("paper", "published", [{"scales": ["paper"], "published": [NUMBER]}, NUMBER])
    assert folder.load()["paper"].spec["published"] == [NUMBER | {"scales": ["paper"]}, NUMBER]


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ({"scales": ["cqu"]}, 'published[1].scales: unknown scale "cqu"; did you mean "cpu"?'),
        ({"scale": ["cpu"]}, 'published[1].scale: unknown key; did you mean "scales"?'),
        ({"scales": []}, "published[1].scales: must not be empty"),
        ({"published": []}, "published[1].published: must not be empty"),
        ({"published": [{"whats": "x"}]}, "published[1].published[0].whats: unknown key; did you mean"),
        ({"published": [{"what": "x"}]}, "published[1].published[0]: value: missing"),
        (
            {"published": [{"what": "x", "value": 1, "source": "y", "scales": ["cpu"]}]},
            "published[1].published[0].scales: its group has scales; remove one of the two",
        ),
    ],
)
def test_a_mistake_in_a_group_is_one_line(folder, group, message):
    folder.set("paper", "published", [NUMBER, {"scales": ["cpu"], "published": [NUMBER]} | group])
    with pytest.raises(UserError) as error:
        folder.load()
    assert str(error.value).startswith(f"{folder.path / 'paper'}.yaml: {message}")


def test_a_group_names_its_scales(folder):
    folder.set("paper", "published", [{"published": [NUMBER]}])
    with pytest.raises(UserError, match=r"published\[0\]: scales: missing"):
        folder.load()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["grpo", "pretrain"])
def test_fields_are_those_of_the_true_dataclass(kind):
    """Names, and that each default is of a type read from the source."""
    from transformers import TrainingArguments
    from trl import GRPOConfig

    true = {
        field.name: field
        for field in dataclasses.fields({"grpo": GRPOConfig, "pretrain": TrainingArguments}[kind])
    }
    read = fields(stage_rules()["kinds"][kind]["config"])
    assert set(read) == {name for name, field in true.items() if field.init}
    words = {int: "integer", float: "number", bool: "boolean", str: "string", dict: "object", list: "array"}
    for name, field in true.items():
        found = read[name].types
        union = typing.get_origin(field.type) in (typing.Union, types.UnionType)
        options = typing.get_args(field.type) if union else (field.type,)
        known = {words[t] for t in (typing.get_origin(o) or o for o in options) if t in words}
        assert known <= found, name
        assert (type(None) in options) == ("null" in found), name


@pytest.mark.slow
def test_choices_are_those_that_trl_knows():
    import inspect

    from trl import GRPOTrainer

    source = inspect.getsource(GRPOTrainer)
    for name, values in stage_rules()["kinds"]["grpo"]["choices"].items():
        for value in values:
            assert f'"{value}"' in source, (name, value)


def test_reading_recipes_imports_neither_torch_nor_trl():
    code = "import sys, encore.recipe.load as r; r.load_all(); print({'torch', 'trl'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
