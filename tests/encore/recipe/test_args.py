"""The arguments of trainers as types: the defaults of the installed classes, and what no recipe may say."""

import importlib

import pytest
from pydantic import ValidationError

from encore.recipe import args, grpo_args, mistakes, trl_fields

OF_TRAINERS = [
    *(args.TrainingArgs, args.SftArgs, args.DpoArgs, args.KtoArgs, args.RewardArgs),
    grpo_args.GrpoArgs,
]
# what a class computes from other fields, or from the machine, where nobody says it
COMPUTED = {"bf16", "steps_per_generation", "generation_batch_size"}


def class_of(model: type[args.Args]) -> type:
    module, _, name = model.config.rpartition(".")
    return getattr(importlib.import_module(module), name)


def told(model: type[args.Args], given: dict) -> list[str]:
    with pytest.raises(ValidationError) as error:
        model.model_validate(given)
    return mistakes.lines(error.value, given, ["args"])


@pytest.mark.slow
@pytest.mark.parametrize("model", OF_TRAINERS)
def test_defaults_are_those_that_the_trainers_class_has(model, tmp_path):
    made = class_of(model)(output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to="none")
    fields = {name: field for name, field in model.model_fields.items() if name not in COMPUTED}
    assert len(fields) > 20
    for name, field in fields.items():
        effective = getattr(made, name)
        effective = getattr(effective, "value", effective)  # of an enumeration
        assert field.default == (tuple(effective) if isinstance(effective, list) else effective), name


@pytest.mark.slow
@pytest.mark.parametrize("model", OF_TRAINERS)
def test_defaults_that_are_computed_are_none_in_the_source_too(model):
    read = trl_fields.fields(model.config)
    for name in COMPUTED & model.model_fields.keys():
        assert str(model.model_fields[name].default) == read[name].default


def test_a_field_that_is_not_written_out_is_checked_by_its_source():
    given = {"adam_beta1": "big", "adam_bet1": 0.9, "push_to_hub": True, "zzz": 3, "ddp_timeout": 10}
    assert told(args.SftArgs, given) == [
        'args.adam_beta1: expected a number, got the text "big"',
        'args.adam_bet1: unknown key; did you mean "adam_beta1"?',
        "args.push_to_hub: it would reach the network; remove it",
        "args.zzz: unknown key",
    ]


def test_null_is_told_where_a_field_takes_it():
    assert told(grpo_args.GrpoArgs, {"epsilon_high": "0.3", "epsilon": None, "max_steps": "1e3"}) == [
        'args.epsilon_high: expected a number or null, got the text "0.3"',
        "args.epsilon: expected a number, got nothing",
        'args.max_steps: expected a whole number, got the text "1e3"; write 1000',
    ]
    assert grpo_args.GrpoArgs(epsilon_high=None).epsilon_high is None


def test_ppo_has_one_mean_only():
    assert told(grpo_args.PpoArgs, {"loss_type": "grpo"}) == [
        'args.loss_type: unknown value the text "grpo"; did you mean "dapo"?'
    ]
