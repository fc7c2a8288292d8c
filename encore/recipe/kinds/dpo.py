"""Stage `dpo`: the policy is trained on pairs of completions, without a reward model."""

from typing import Literal

from encore.recipe.args import DpoArgs
from encore.recipe.base import Positive
from encore.recipe.kinds.stage import Dtype, Lora, Source, Stage


class DpoStage(Stage):
    """The policy is trained by DPO or one of its relatives."""

    takes = {"data": "preferences"}
    required = ("needs.data", "pairs", "args")
    written_out = ("loss_type", "beta", "optim", "learning_rate", "lr_scheduler_type", "max_length")

    run: Literal["dpo"]
    needs: dict[Literal["policy", "data", "reference"], str] = {}  # default of reference: policy
    args: DpoArgs = DpoArgs()
    model: Source | None = None
    evaluate_every: Positive | None = None  # as in stage grpo
    global_batch: Positive | None = None  # pairs of an optimizer step; as in stage grpo
    lora: Lora | None = None
    saved_dtype: Dtype | None = None  # as in stage pretrain
    # which pairs of each prompt's ranking to learn from
    pairs: Literal["all", "best_worst", "one"] | None = None
