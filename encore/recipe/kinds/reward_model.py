"""Stage `reward_model`: a model learns to score completions, from comparisons or from labels."""

from collections.abc import Iterator
from typing import Literal

from encore.recipe.args import RewardArgs
from encore.recipe.base import Mistake, Positive, below
from encore.recipe.corpus import DemonstrationSource
from encore.recipe.kinds.stage import rule
from encore.recipe.kinds.training import TuningStage

OF_COMPARISONS = ("demonstrations", "lora", "members", "normalize")


class RewardModelStage(TuningStage):
    """A stage that trains a reward model. Also with `lora`, its head is trained without adapters.

    The examples of a batch are prompts or, for shuffled comparisons, pairs.
    """

    holds_data_out = True
    product = "a reward model"
    takes = {"data": "preferences or samples or step labels"}  # samples and step labels are for `labels`
    required = ("needs.data", "args.learning_rate", "args.lr_scheduler_type")

    run: Literal["reward_model"]
    needs: dict[Literal["policy", "data", "demonstrations"], str] = {}
    args: RewardArgs = RewardArgs()
    # demonstrations whose mean reward is set to 0; needs.demonstrations may name a stage with them instead
    demonstrations: DemonstrationSource | None = None
    # all pairs of a prompt as one batch element, or each pair as one
    comparisons: Literal["grouped", "shuffled"] | None = None
    # A classifier of right and wrong, instead of comparisons. outcome: at the end of a completion, by the
    # verifier of its answer (an outcome reward model); steps: also at the end of each step, by its world's
    # step verifier or a stage label_steps (a process reward model).
    labels: Literal["outcome", "steps"] | None = None
    problems: Positive | None = None  # number of prompts to train on, the first ones; default: all
    members: Positive = 1  # number of members of an ensemble, which differ in head and order of the data
    normalize: Literal["mean", "unit"] | None = (
        None  # scale of rewards: mean 0 (the default), or also standard deviation 1
    )

    @rule
    def _comparisons_or_labels(self) -> Iterator[Mistake]:
        """Yield mistakes: not exactly one of comparisons and labels, or keys that labels exclude."""
        if (self.labels is None) == (self.comparisons is None):
            yield "labels, comparisons", "expected exactly one of the two"
            return
        for key in OF_COMPARISONS if self.labels else ():
            if key in self.model_fields_set or key in self.needs:
                yield key, "a reward model with labels has none; remove it"
                return

    @rule
    def _one_centre(self) -> Iterator[Mistake]:
        """Yield mistakes: two sources of demonstrations, or mistakes within the source."""
        if self.demonstrations is None:
            return
        if "demonstrations" in self.needs:
            yield "demonstrations", "needs.demonstrations has them; remove one of the two"
        else:
            yield from below("demonstrations", self.demonstrations.source_mistakes())
