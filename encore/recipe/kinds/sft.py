"""Stage `sft`: the policy learns from demonstrations.

They are those of a stage (needs.data), of a world (task, template, corpus) or of a data set (task), and those
of `also`. Demonstrations of more than args.max_length tokens are left out.
"""

from collections.abc import Iterator
from typing import Literal

from encore.recipe.args import SftArgs
from encore.recipe.base import Identifier, Model, PartOfAll, Positive
from encore.recipe.checks import demonstrations
from encore.recipe.kinds.stage import Chat, Corpus, Dtype, Mistake, RawTask, TrueOrChat, rule
from encore.recipe.kinds.training import TuningStage

FIRST = ("data", "task")  # names of the source that `also` goes with


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


class SftStage(TuningStage):
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
    also: dict[Identifier, MixedIn] = {}
    saved_dtype: Dtype | None = None  # as in stage pretrain

    @rule
    def _one_source(self) -> Iterator[Mistake]:
        """Yield demonstrations that have two sources, or none: a stage, a world or a data set."""
        written = [key for key in ("task", "template", "corpus") if getattr(self, key) is not None]
        if "data" in self.needs:
            if written:
                yield written[0], "needs.data has the demonstrations; remove one of the two"
            elif isinstance(self.chat, Chat):
                yield (
                    "chat",
                    "the prompts of needs.data are complete; write chat: true, for how a reply ends",
                )
        elif self.task is None:
            words = "missing; or give the task, template and corpus of demonstrations"
            yield "needs.data", words
        else:
            demonstrations.check_keys(self.said)

    @rule
    def _sources_beside(self) -> Iterator[Mistake]:
        """Yield sources of `also` that are not sound, or that leave the first source no share."""
        for name, source in self.also.items():
            if name in FIRST:
                yield f"also.{name}", "a reserved name; call the source something else"
                return
            demonstrations.check_source(source.said, f"also.{name}")
        total = sum(source.share or 0 for source in self.also.values())
        if total >= 1:
            yield "also", f"expected shares that add up to less than 1, got {total:g}"
