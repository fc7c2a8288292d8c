"""Documents that a world writes, and demonstrations that no other stage makes."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from encore import worlds
from encore.recipe.base import Mistake, Model, PartOfAll, Positive, Some, below
from encore.recipe.form import Chat, Formed, placed
from encore.recipe.task import NO_CORPUS, CorpusTask, DemonstrationTask, WorldTask
from encore.worlds import World
from encore.worlds.text import FEEDBACK

# kind of document that the world can write -> its weight, or its weight and the dials of the kind
Mixture = Annotated[dict[str, Any], Field(min_length=1)]


class CorpusPart(Model):
    """A further task of a corpus, with its share of the documents."""

    task: CorpusTask
    # as the template of the stage; {response}, where it stands, is the document's own completion, so that the
    # policy learns to use a response that a prompt shows
    template: str
    mixture: Mixture
    share: PartOfAll
    # number of test problems that the documents are about: the first ones that an evaluation of the same task
    # and seed asks; by default the documents are about training problems
    leaked: Positive | None = None
    # documents among which are wrong attempts; {feedback} in the template then stands for what the world says
    # of a wrong one at the document's problem (worlds with a method `feedback`)
    attempts: Mixture | None = None

    def mistakes(self) -> Iterator[Mistake]:
        """Yield mistakes: no place for the question in the template, or unknown kinds of documents."""
        yield from placed("template", self.template)
        mistakes = [*below("task", self.task.mistakes())]
        yield from mistakes
        if not mistakes:
            worlds.mix(self.task.make_world(), self.mixture)
            yield from self._mistaken_attempts()

    def _mistaken_attempts(self) -> Iterator[Mistake]:
        """Yield mistakes in `attempts`: no place for the words in the template, or a world without words."""
        if self.attempts is None:
            if FEEDBACK in self.template:
                yield "attempts", f"missing; {FEEDBACK} in the template stands for words on a wrong attempt"
            return
        yield from placed("template", self.template, FEEDBACK)
        if self.task.gives_feedback:
            worlds.mix(self.task.make_world(), self.attempts, "attempts")
        else:
            yield "attempts", "needs a world with a method feedback(problem, completion)"


class Corpus(Model):
    """The number of documents, and the share of each kind of document."""

    documents: Positive | None = None  # number of documents of all tasks together
    mixture: Mixture | None = None
    also: Some[CorpusPart] | None = None

    def mistakes(self, world: World) -> Iterator[Mistake]:
        """Yield mistakes: documents that a world cannot write, or shares that leave the first task none."""
        if self.mixture is not None:
            worlds.mix(world, self.mixture)
        for place, part in enumerate(self.also or ()):
            yield from below(f"also[{place}]", part.mistakes())
        total = sum(part.share for part in self.also or ())
        if total >= 1:
            yield "also", f"expected shares that add up to less than 1, got {total:g}"


class DemonstrationSource(Formed):
    """Demonstrations that come from a world or a data set, not from another stage."""

    task: DemonstrationTask | None = None
    corpus: Corpus | None = None  # documents of a world
    problems: Positive | None = None  # number of rows to read from a data set, the first ones

    def source_mistakes(self, share: float | None = None) -> Iterator[Mistake]:
        """Yield the keys that the source lacks, and the keys that belong to the other kind of source.

        `share` is its share of all rows, if its number of rows is not set.
        """
        if self.task is None:
            yield "task", "missing"
            return
        mistakes = [*below("task", self.task.mistakes())]
        yield from mistakes
        if isinstance(self.chat, Chat) and self.chat.prefill is not None:
            yield "chat.prefill", "a demonstration has the whole reply; remove it"
        if isinstance(self.task, WorldTask):
            yield from self._of_world(share)
            if not mistakes:
                yield from below("corpus", (self.corpus or Corpus()).mistakes(self.task.make_world()))
        elif self.corpus is not None:
            yield "corpus", NO_CORPUS
        elif share is not None and self.problems is not None:
            yield "problems", "share says how many rows; remove one of the two"
        yield from self.form_mistakes()

    def _of_world(self, share: float | None) -> Iterator[Mistake]:
        corpus = self.corpus or Corpus()
        if self.chat is not None:
            yield "chat", "a world writes its demonstrations by a template; write one instead"
        elif self.template is None or self.corpus is None:
            key = "template" if self.template is None else "corpus"
            yield key, "missing; a world writes its demonstrations by it"
        elif corpus.mixture is None:
            yield "corpus.mixture", "missing"
        elif share is not None and corpus.documents is not None:
            yield "corpus.documents", "share says how many; remove one of the two"
        elif share is None and corpus.documents is None:
            yield "corpus.documents", "missing"
        if self.problems is not None:
            yield "problems", "of a Hub dataset; a world writes corpus.documents"
