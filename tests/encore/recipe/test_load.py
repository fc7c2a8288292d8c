"""Reading recipes, and the fields of config dataclasses that are read without importing them."""

import dataclasses
import subprocess
import sys
import types
import typing

import pytest

from encore.recipe.grpo_args import GrpoArgs
from encore.recipe.kinds import args_of
from encore.recipe.trl_fields import fields


def test_arms_of_a_scale(folder):
    recipe = folder.load()["paper"]
    assert recipe.arms("cpu") == ["base-recipe", "hot", "only-cpu"]
    assert recipe.arms("paper") == ["base-recipe", "hot"]


def test_a_claim_knows_its_id_and_its_test(folder):
    claim = folder.specs["paper"]["claims"]["lifts"]
    folder.set("paper", "claims/last", claim | {"primary": True})
    first, last = folder.load()["paper"].claims("cpu")
    assert (first.id, first.says, first.source, first.primary) == ("lifts", "it lifts", "Fig. 1", False)
    assert first.test.sides == (
        ("base-recipe/after", "heldout/accuracy"),
        ("base-recipe/before", "heldout/accuracy"),
    )
    assert (first.test.direction, first.test.margin, first.test.matters) == ("higher", 0.25, 0.25)
    assert (last.id, last.primary, last.test) == ("last", True, first.test)


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


@pytest.mark.slow
def test_reading_recipes_imports_neither_torch_nor_trl():
    code = "import sys, encore.recipe.load as r; r.load_all(); print({'torch', 'trl'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
