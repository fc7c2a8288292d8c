"""Stage `kto`: the policy is trained on single completions, each of which is desirable or not."""

from collections.abc import Iterator
from typing import Literal

from encore.recipe.args import KtoArgs
from encore.recipe.base import Mistake
from encore.recipe.kinds.pairs import PairsStage
from encore.recipe.kinds.stage import rule


class KtoStage(PairsStage):
    """A stage that trains the policy by KTO. The examples of a batch are completions.

    The chosen completion of a pair is desirable, the rejected one is not. The stage runs on one GPU: the KL
    is estimated from each micro-batch, and so would depend on the number of GPUs.
    """

    written_out = ("beta", "optim", "learning_rate", "lr_scheduler_type", "max_length")

    run: Literal["kto"]
    args: KtoArgs = KtoArgs()
    # Whether one completion of each pair is left out: the rejected one of the first pair, the chosen one of
    # the second, and so on. Then no two completions are compared.
    unpaired: bool = False

    @rule
    def _nothing_known_before(self) -> Iterator[Mistake]:
        """Yield a mistake if the reference should read the data before training."""
        if self.args.precompute_ref_log_probs:
            words = "the completions from which the KL is estimated differ from epoch to epoch; remove it"
            yield "args.precompute_ref_log_probs", words

    @rule
    def _several_rows(self) -> Iterator[Mistake]:
        """Yield a mistake if a micro-batch has a single row; the KL is estimated from the others."""
        if self.portion(1).rows < 2:
            words = "expected at least 2: the KL is estimated from the completions of other rows, got 1"
            yield "args.per_device_train_batch_size", words
