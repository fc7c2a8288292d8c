"""Stage `pretrain`: a language model is trained from scratch on the documents of a world."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic_core import InitErrorDetails

from encore.recipe.base import Mistake, below, mistake, unknown_key
from encore.recipe.corpus import Corpus
from encore.recipe.form import placed
from encore.recipe.kinds.stage import rule
from encore.recipe.kinds.training import MeasuredStage
from encore.recipe.machine import Dtype
from encore.recipe.shape import Shape
from encore.recipe.task import CorpusTask


class PretrainStage(MeasuredStage):
    """A stage that trains a language model from scratch."""

    required = ("task", "template", "corpus.documents", "corpus.mixture", "model", "args")

    run: Literal["pretrain"]
    task: CorpusTask | None = None
    template: str | None = None
    corpus: Corpus | None = None
    # dtype of the saved weights. Default: the dtype of training, which with args.bf16 is float32. Saved in
    # bfloat16, weights would lose most of what RL at a small learning rate has changed.
    saved_dtype: Dtype | None = None
    model: Shape | None = None

    @classmethod
    def further_mistakes(cls, value: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """Yield a mistake for every role in `needs`: this stage needs no other stage."""
        needs = value.get("needs")
        for role in needs if isinstance(needs, Mapping) else ():
            yield mistake(("needs", role), unknown_key(role, []))

    def unsound(self) -> Iterator[Mistake]:
        """Yield the mistakes within the task, the template and the corpus."""
        if self.template is not None:
            yield from placed("template", self.template)
        if self.task is not None:
            world = self.task.make_world()
            yield from below("corpus", (self.corpus or Corpus()).mistakes(world))

    @rule
    def _shape_that_fits(self) -> Iterator[Mistake]:
        """Yield mistakes in the numbers of heads and experts."""
        if self.model:
            yield from below("model", self.model.mistakes())
