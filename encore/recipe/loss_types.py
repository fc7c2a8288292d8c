"""The loss types of TRL, grouped by what the loss does.

The module imports no torch: recipe checks and the analysis use it too.
"""

from encore.errors import UserError

TOKEN_MEAN = ("dapo", "cispo")  # loss types that divide by the tokens of an optimizer step
# loss types to which a completion adds the same, whichever completions are in its micro-batch
WHOLE = ("grpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo")
CLIPPED = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")  # loss types whose clip cuts gradients
DPO_LOSSES = (
    *("sigmoid", "hinge", "ipo", "exo_pair", "nca_pair", "robust", "bco_pair", "sppo_hard"),
    *("aot", "aot_unpaired", "apo_zero", "apo_down", "discopop", "sft", "sigmoid_norm"),
)
ORPO = "orpo"  # a loss of stage dpo that TRL's DPOTrainer lacks: encore/learning/orpo.py
SMOOTHED = ("robust", "exo_pair", "aot", "aot_unpaired")  # DPO losses that read label_smoothing


def check_window(
    loss_type: str,
    window: int,
    rollout: int,
    names: tuple[str, str] = ("steps_per_generation", "gradient_accumulation_steps"),
) -> None:
    """Raise UserError if a rollout is not whole optimizer steps, although the loss needs that.

    `rollout` and `window` are the lengths of a rollout and of an optimizer step, in micro-batches or another
    common unit, and `names` the keys that set them. A loss that divides by the tokens of an optimizer step
    must know these before its first backward pass.
    """
    if loss_type in TOKEN_MEAN and rollout % window:
        raise UserError(
            f"args.{names[0]}: {rollout} is no multiple of {names[1]} ({window}); "
            f"loss_type {loss_type} divides by the tokens of an optimizer step, all of one rollout"
        )
