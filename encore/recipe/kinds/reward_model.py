"""Stage `reward_model`: a model learns to score completions, from comparisons or from labels."""

from typing import Literal

from encore.recipe.args import RewardArgs
from encore.recipe.base import Positive
from encore.recipe.kinds.sft import Demonstrations
from encore.recipe.kinds.stage import Lora, RawTask, Source, Stage


class Centre(Demonstrations):
    """Demonstrations of which the mean reward is to be 0."""

    task: RawTask


class RewardModelStage(Stage):
    """A reward model is trained."""

    product = "a reward model"
    takes = {"data": "preferences or samples or step labels"}  # the latter two: with `labels`
    required = ("needs.data", "args.learning_rate", "args.lr_scheduler_type")

    run: Literal["reward_model"]
    needs: dict[Literal["policy", "data", "demonstrations"], str] = {}
    args: RewardArgs = RewardArgs()
    model: Source | None = None
    demonstrations: Centre | None = None  # in place of needs.demonstrations
    global_batch: Positive | None = None  # prompts or, shuffled, pairs of an optimizer step; as in stage grpo
    # all pairs of a prompt as one batch element, or each pair as one
    comparisons: Literal["grouped", "shuffled"] | None = None
    # In place of comparisons: a classifier of right and wrong. outcome: at the end of a completion, by the
    # verifier of its answer (an outcome reward model); steps: also at the end of each step, by its world's
    # step verifier or a stage label_steps (a process reward model).
    labels: Literal["outcome", "steps"] | None = None
    problems: Positive | None = None  # how many prompts to train on, the first ones; default: all
    lora: Lora | None = None  # the head is trained whole
    members: Positive = 1  # of an ensemble, which differ in head and order of the data
    normalize: Literal["mean", "unit"] | None = (
        None  # rewards: mean 0 (the default), or also standard deviation 1
    )
