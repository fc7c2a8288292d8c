"""Contradictions in a `dpo` stage are told in one line before any job starts."""

import pytest

from encore.errors import UserError
from encore.recipe.kinds import read_stage

ARGS = {"loss_type": ["sigmoid"], "beta": 0.1}


def check(keys):
    read_stage({"run": "dpo", "needs": {"policy": "p", "data": "d"}, "pairs": "all", **keys}).check_rules()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"loss_type": ["sigmoyd"]}, 'args.loss_type: unknown loss "sigmoyd"; did you mean "sigmoid"?'),
        ({"loss_type": []}, "args.loss_type: expected at least one loss, got none"),
        ({"loss_weights": [1.0, 2.0]}, "args.loss_weights: 2 of them for 1 losses in loss_type"),
        ({"beta": 0.0}, "args.beta: expected more than 0, got 0.0"),
        ({"label_smoothing": 0.1}, "args.label_smoothing: loss_type sigmoid takes no notice of it"),
        ({"truncation_mode": "keep_end"}, "args.truncation_mode: TRL keeps the start; remove it"),
        (
            {"sync_ref_model": True, "precompute_ref_log_probs": True},
            "args.precompute_ref_log_probs: the reference model changes",
        ),
    ],
)
def test_a_mistake_in_args(args, says):
    with pytest.raises(UserError) as error:
        check({"args": ARGS | args})
    assert str(error.value).startswith(says)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"reference_free": True}, None),
        (
            {"reference_free": True, "args": {"sync_ref_model": True}},
            "args.sync_ref_model: there is no reference",
        ),
        (
            {"simpo_gamma": 0.5},
            "simpo_gamma: SimPO has reference_free: true and args.loss_type: [sigmoid_norm]",
        ),
        ({"reference_free": True, "simpo_gamma": 0.5}, "simpo_gamma: SimPO has reference_free: true"),
        (
            {"args": {"loss_type": ["orpo"]}},
            "args.loss_type: orpo stands alone, and has reference_free: true",
        ),
        ({"reference_free": True, "args": {"loss_type": ["orpo"]}}, None),
        ({"reference_free": True, "simpo_gamma": 0.5, "args": {"loss_type": ["sigmoid_norm"]}}, None),
    ],
)
def test_a_loss_without_a_reference(keys, says):
    stage = keys | {"args": ARGS | keys.get("args", {})}
    if says is None:
        return check(stage)
    with pytest.raises(UserError) as error:
        check(stage)
    assert str(error.value).startswith(says)


def test_label_smoothing_where_it_is_read():
    check({"args": ARGS | {"loss_type": ["robust"], "label_smoothing": 0.1}})
