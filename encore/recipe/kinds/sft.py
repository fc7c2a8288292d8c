"""Stage `sft`: the policy learns from demonstrations.

They are those of a stage (needs.data), of a world (task, template, corpus) or of a data set (task), and those
of `also`. Demonstrations of more than args.max_length tokens are left out.
"""

from typing import Literal

from encore.recipe.args import SftArgs
from encore.recipe.base import Identifier, Model, PartOfAll, Positive
from encore.recipe.kinds.stage import Corpus, Dtype, Lora, RawTask, Source, Stage, TrueOrChat


class Demonstrations(Model):
    """Demonstrations that no other stage makes."""

    task: RawTask | None = None
    template: str | None = None
    chat: TrueOrChat | None = None
    corpus: Corpus | None = None
    problems: Positive | None = None


class MixedIn(Demonstrations):
    """Further demonstrations, mixed in at random."""

    share: PartOfAll | None = None  # of all rows, in place of their number


class SftStage(Stage):
    """The policy learns from demonstrations."""

    takes = {"data": "demonstrations"}
    data_set = "task-hub-demonstrations"
    required = ("args.learning_rate", "args.lr_scheduler_type")

    run: Literal["sft"]
    needs: dict[Literal["policy", "data"], str] = {}
    args: SftArgs = SftArgs()
    task: RawTask | None = None
    template: str | None = None
    chat: TrueOrChat | None = None
    corpus: Corpus | None = None
    decontaminate: bool = False  # as in stage grpo
    problems: Positive | None = None  # of needs.data or of a data set: how many rows, the first ones
    evaluate_every: Positive | None = None  # as in stage grpo
    global_batch: Positive | None = None  # as in stage grpo
    lora: Lora | None = None
    also: dict[Identifier, MixedIn] = {}
    model: Source | None = None
    saved_dtype: Dtype | None = None  # as in stage pretrain
