"""Stage `sft`: the policy learns from demonstrations.

The demonstrations come from a stage (needs.data), a world (task, template, corpus) or a data set (task), and
from `also`. Demonstrations of more than args.max_length tokens are left out.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

from encore.recipe.args import SftArgs
from encore.recipe.base import Identifier, Mistake, PartOfAll, Positive, below
from encore.recipe.corpus import DemonstrationSource
from encore.recipe.form import Chat
from encore.recipe.kinds.stage import rule
from encore.recipe.kinds.training import MeasuredStage, TuningStage
from encore.recipe.machine import Dtype

FIRST = ("data", "task")  # names of the sources that `also` can be added to


class MixedIn(DemonstrationSource):
    """Further demonstrations, which are mixed in at random."""

    share: PartOfAll | None = None  # share of all rows, instead of their number


class SftStage(DemonstrationSource, TuningStage, MeasuredStage):
    """A stage in which the policy learns from demonstrations."""

    takes = {"data": "demonstrations"}
    required = ("args.learning_rate", "args.lr_scheduler_type")

    run: Literal["sft"]
    needs: dict[Literal["policy", "data"], str] = {}
    args: SftArgs = SftArgs()
    decontaminate: bool = False  # whether to keep out prompts of evaluations, as in stage grpo
    # number of rows of needs.data or of a data set, the first ones
    problems: Positive | None = None
    also: dict[Identifier, MixedIn] = {}
    saved_dtype: Dtype | None = None  # dtype of the saved weights, as in stage pretrain

    @property
    def parts(self) -> Mapping[str, DemonstrationSource]:
        """The sources by name: the stage itself, and the sources of `also`."""
        return {"": self, **self.also}

    @rule
    def _one_source(self) -> Iterator[Mistake]:
        """Yield a mistake unless demonstrations have one source: a stage, a world or a data set."""
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
            yield from self.source_mistakes()

    @rule
    def _sources_beside(self) -> Iterator[Mistake]:
        """Yield the mistakes in sources of `also`, and shares that leave the first source none."""
        for name, source in self.also.items():
            if name in FIRST:
                yield f"also.{name}", "a reserved name; call the source something else"
                return
            yield from below(f"also.{name}", source.source_mistakes(source.share))
        total = sum(source.share or 0 for source in self.also.values())
        if total >= 1:
            yield "also", f"expected shares that add up to less than 1, got {total:g}"
