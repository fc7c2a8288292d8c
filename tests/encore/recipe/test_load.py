"""Reading recipes, and the fields of config dataclasses that are read without importing them."""

import dataclasses
import subprocess
import sys
import types
import typing

import pytest

from encore.errors import UserError
from encore.recipe.kinds import args_of
from encore.recipe.rl_args import GrpoArgs
from encore.recipe.trl_fields import fields

NUMBER = {"what": "x", "value": 1.0, "source": "y"}
CLAIM = {
    "id": "lifts",
    "says": "it lifts",
    "source": "Fig. 1",
    "metric": "heldout/accuracy",
    "of": "base-recipe/after",
    "direction": "higher",
    "margin": 0.25,
}
ROWS = {"claims": CLAIM, "published": NUMBER}


def test_arms_of_a_scale(folder):
    recipe = folder.load()["paper"]
    assert recipe.arms("cpu") == ["base-recipe", "hot", "only-cpu"]
    assert recipe.arms("paper") == ["base-recipe", "hot"]


def test_groups_of_claims_and_of_published_numbers_are_read_as_their_rows(folder):
    claim, number = CLAIM, NUMBER
    last = claim | {"id": "last"}
    group = {"scales": ["cpu"], "claims": [claim | {"id": "first"}, claim | {"id": "second"}]}
    folder.set("paper", "claims", [claim, group, last])
    folder.set("paper", "published", [{"scales": ["paper"], "published": [number]}, number])
    spec = folder.load()["paper"].spec
    in_group = [claim | {"id": name, "scales": ["cpu"]} for name in ("first", "second")]
    assert spec["claims"] == [claim, *in_group, last]
    assert spec["published"] == [number | {"scales": ["paper"]}, number]


@pytest.mark.parametrize(
    ("section", "group", "message"),
    [
        ("claims", {"scales": ["cqu"]}, 'claims[1].scales: unknown scale "cqu"; did you mean "cpu"?'),
        ("published", {"scales": ["cqu"]}, 'published[1].scales: unknown scale "cqu"; did you mean "cpu"?'),
        ("claims", {"scale": ["cpu"]}, 'claims[1].scale: unknown key; did you mean "scales"?'),
        ("claims", {"scales": []}, "claims[1].scales: must not be empty"),
        ("claims", {"claims": []}, "claims[1].claims: must not be empty"),
        ("claims", {"claims": [{"margins": 1}]}, "claims[1].claims[0].margins: unknown key; did you mean"),
        ("claims", {"claims": [{}]}, "claims[1].claims[0]: id: missing"),
        ("published", {"published": [{"what": "x"}]}, "published[1].published[0]: value: missing"),
        (
            "published",
            {"published": [{"what": "x", "value": 1, "source": "y", "scales": ["cpu"]}]},
            "published[1].published[0].scales: its group has scales; remove one of the two",
        ),
    ],
)
def test_a_mistake_in_a_group_is_one_line(folder, section, group, message):
    row = ROWS[section]
    folder.set("paper", section, [row, {"scales": ["cpu"], section: [row]} | group])
    with pytest.raises(UserError) as error:
        folder.load()
    assert str(error.value).startswith(f"{folder.path / 'paper'}.yaml: {message}")


def test_a_group_names_its_scales(folder):
    folder.set("paper", "claims", [{"claims": folder.specs["paper"]["claims"]}])
    with pytest.raises(UserError, match=r"claims\[0\]: scales: missing"):
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
    read = fields(args_of(kind).config)
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
    choices = {name: field.annotation for name, field in GrpoArgs.model_fields.items()}
    choices = {
        name: typing.get_args(of) for name, of in choices.items() if typing.get_origin(of) is typing.Literal
    }
    assert {"loss_type", "vllm_mode"} <= choices.keys()
    for name, values in choices.items():
        for value in values:
            assert f'"{value}"' in source, (name, value)


def test_reading_recipes_imports_neither_torch_nor_trl():
    code = "import sys, encore.recipe.load as r; r.load_all(); print({'torch', 'trl'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
