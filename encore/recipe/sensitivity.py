"""Protocol sensitivity: one task by every combination of template, wording, temperature and backend.

    evals:
      sensitivity:
        task: heldout
        items: 64
        samples: 4
        templates: {turn: "<user>{question}<assistant>", begun: "<user>{question}<assistant><think>"}
        wordings: {plain: "{question}", polite: "Please answer: {question}"}
        temperatures: [1.0, 0.6, 0.0]
        backends: [lean, hf]

The recipe's first arm is measured so with its first seed, before and after training: at its first and its
last checkpoint. There is one evaluation for each of both and each backend, `before_sensitivity_lean`, whose
tasks are the other choices. Of a choice without its key the task's own stands alone. The first of each choice
is what the report compares the others with, so the recipe's own protocol comes first.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated, NamedTuple

from pydantic import Field

from encore.recipe.base import Mistake, Model, Name, Positive, Some
from encore.recipe.form import Chat, Form, placed
from encore.recipe.machine import Backend
from encore.worlds.text import prompt

MARK = "_sensitivity_"  # between checkpoint and backend in the name of an evaluation
OWN = "own"  # the task's own template or wording

Texts = Annotated[dict[Name, str], Field(min_length=1)]


class Protocol(NamedTuple):
    """One way to measure a model."""

    template: str
    wording: str
    temperature: float
    backend: str

    @property
    def task(self) -> str:
        """The name of the task by the protocol, among those of an evaluation, which are of one backend."""
        return f"{self.template}+{self.wording}+t{self.temperature:g}"


class Sensitivity(Model):
    """Choices whose every combination is a protocol; the first of each is compared with."""

    task: str  # of tasks
    items: Positive | None = None  # default: the task's
    samples: Positive | None = None  # of each item, one at temperature 0; default: the task's
    templates: Texts = {}
    wordings: Texts = {}  # of the question, inside of a template or chat
    temperatures: Some[Annotated[float, Field(ge=0, le=100)]] = ()
    backends: Some[Backend] = ()

    def protocols(self, temperature: float, backend: Backend) -> list[Protocol]:
        """Return every combination; `temperature` and `backend`: those of the task itself."""
        return [Protocol(*choices) for choices in product(*self._choices(temperature, backend))]

    def form(self, protocol: Protocol, own: Form) -> Form:
        """Return the chosen template, or the task's `own` form, with the question in the chosen wording."""
        wording = self.wordings.get(protocol.wording, "{question}")
        if self.templates:
            return Form(prompt(self.templates[protocol.template], wording))
        if own.chat is None:
            return Form(prompt(own.template, wording))
        user = prompt(own.chat.user or "{question}", wording)
        return replace(own, chat=Chat(**own.chat.model_dump(exclude_unset=True) | {"user": user}))

    def mistakes(self, temperature: float, backend: Backend) -> Iterator[Mistake]:
        """Yield texts without a place for the question, choices that stand twice, and none to compare."""
        for key, texts in (("templates", self.templates), ("wordings", self.wordings)):
            for name, text in texts.items():
                yield from placed(f"{key}.{name}", text)
        choices: tuple[tuple[str, Sequence[object]], ...]
        choices = (("temperatures", self.temperatures), ("backends", self.backends))
        for key, values in choices:
            for value in [value for value, count in Counter(values).items() if count > 1][:1]:
                yield key, f"{value} is there twice; remove one"
        if all(len(names) == 1 for names in self._choices(temperature, backend)):
            yield "", "nothing to compare; give two templates, wordings, temperatures or backends"

    def _choices(
        self, temperature: float, backend: Backend
    ) -> tuple[Sequence[str], Sequence[str], Sequence[float], Sequence[str]]:
        """Return what there is to choose of each field of a protocol."""
        texts = ([*self.templates] or [OWN], [*self.wordings] or [OWN])
        return (*texts, self.temperatures or (temperature,), self.backends or (backend,))


def evaluation_name(checkpoint: str, backend: str) -> str:
    """Return the name of the evaluation of a checkpoint by a backend."""
    return f"{checkpoint}{MARK}{backend}"


def parts(name: str) -> tuple[str, str]:
    """Return checkpoint and backend of an evaluation; no backend where it is none of `sensitivity`."""
    checkpoint, _, backend = name.partition(MARK)
    return checkpoint, backend
