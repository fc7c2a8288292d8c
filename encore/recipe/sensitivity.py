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

The recipe's first arm is measured in all these ways with its first seed, before and after training: at its
first and its last checkpoint. Each of the two has one evaluation for each backend, such as
`before_sensitivity_lean`; its tasks are the combinations of the other choices. A key that is not set has one
choice, the task's own value. The report compares the combination of all first choices with the others, so the
first choices are best the recipe's own.
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

MARK = "_sensitivity_"  # separates checkpoint and backend in the name of an evaluation
OWN = "own"  # name of the task's own template or wording

Texts = Annotated[dict[Name, str], Field(min_length=1)]


class Protocol(NamedTuple):
    """A combination of choices by which a model is measured."""

    template: str
    wording: str
    temperature: float
    backend: str

    @property
    def task(self) -> str:
        """The name of the task with this protocol, without the backend, which belongs to the evaluation."""
        return f"{self.template}+{self.wording}+t{self.temperature:g}"


class Sensitivity(Model):
    """The choices whose combinations are the protocols.

    The protocol of all first choices is compared with every other protocol.
    """

    task: str  # the task of `tasks` that is measured
    items: Positive | None = None  # number of problems; default: the task's
    # number of completions of each item, 1 at temperature 0; default: the task's
    samples: Positive | None = None
    templates: Texts = {}
    wordings: Texts = {}  # wordings of the question, inside a template or chat
    temperatures: Some[Annotated[float, Field(ge=0, le=100)]] = ()
    backends: Some[Backend] = ()

    def protocols(self, temperature: float, backend: Backend) -> list[Protocol]:
        """Return every combination; `temperature` and `backend` stand in for keys that are not set."""
        return [Protocol(*choices) for choices in product(*self._choices(temperature, backend))]

    def form(self, protocol: Protocol, task_form: Form) -> Form:
        """Return the protocol's template, or else the task's form, around the question in its wording."""
        wording = self.wordings.get(protocol.wording, "{question}")
        if self.templates:
            return Form(prompt(self.templates[protocol.template], wording))
        if task_form.chat is None:
            return Form(prompt(task_form.template, wording))
        user = prompt(task_form.chat.user or "{question}", wording)
        return replace(task_form, chat=Chat(**task_form.chat.model_dump(exclude_unset=True) | {"user": user}))

    def mistakes(self, temperature: float, backend: Backend) -> Iterator[Mistake]:
        """Yield mistakes: a text without `{question}`, the same choice twice, or nothing to compare."""
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
        """Return the choices for each field of a protocol."""
        texts = ([*self.templates] or [OWN], [*self.wordings] or [OWN])
        return (*texts, self.temperatures or (temperature,), self.backends or (backend,))


def evaluation_name(checkpoint: str, backend: str) -> str:
    """Return the name of the evaluation of a checkpoint with a backend."""
    return f"{checkpoint}{MARK}{backend}"


def parts(name: str) -> tuple[str, str]:
    """Return the checkpoint and the backend in an evaluation's name; "" if it names no backend."""
    checkpoint, _, backend = name.partition(MARK)
    return checkpoint, backend
