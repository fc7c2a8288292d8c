"""The form in which a policy reads a question: a template, or the chat template of its tokenizer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Tag

from encore.recipe.base import Mistake, Model, Said, refuse
from encore.recipe.mistakes import shown


class Chat(Model):
    """The texts that are put around a question, together with the tokenizer's chat template.

    It is used instead of `template`. Rewards and verifiers read a reply with its prefill.
    """

    system: Said | None = None
    user: str | None = None  # a text with {question}; default: the question alone
    prefill: Said | None = None  # beginning of every reply, such as "<think>\n"


def _true_or_mapping(value: Any) -> Any:
    if isinstance(value, Mapping) and not value:
        refuse("must not be empty")
    if value is not True and not isinstance(value, Mapping | Chat):
        refuse(f"expected true or a mapping, got {shown(value)}")
    return value


TrueOrChat = Annotated[
    Annotated[Literal[True], Tag("true")] | Annotated[Chat, Tag("a mapping")],
    Discriminator(lambda value: "true" if value is True else "a mapping"),
    BeforeValidator(_true_or_mapping),
]


@dataclass(frozen=True)
class Form:
    """The form of prompts: a template, or the chat template of the policy's tokenizer."""

    template: str = "{question}"
    chat: Chat | None = None  # the chat template, instead of template
    # the JSON schemas of tools that the chat template tells the policy of
    tools: Callable[[], Sequence[Any]] | None = None


class Formed(Model):
    """A part of a recipe that sets the form of its questions."""

    template: str | None = None  # a text with {question}
    chat: TrueOrChat | None = None  # the chat template, instead of template

    @property
    def form(self) -> Form:
        """The form that these keys set: the question alone if they set none."""
        chat = Chat() if self.chat is True else self.chat
        return Form(chat=chat) if chat or self.template is None else Form(self.template)

    @property
    def put(self) -> Any:
        """The value of `chat` or, without it, of `template`, in a form that JSON can hold."""
        if self.chat is None:
            return self.template
        return True if self.chat is True else self.chat.model_dump(exclude_unset=True)

    def form_mistakes(self) -> Iterator[Mistake]:
        """Yield mistakes: both forms are set, or a text has not exactly one place for the question."""
        if self.chat is not None and self.template is not None:
            yield "chat", "template is given too; remove one of the two"
        elif self.template is not None:
            yield from placed("template", self.template)
        elif isinstance(self.chat, Chat) and self.chat.user is not None:
            yield from placed("chat.user", self.chat.user)


class Posed(Formed):
    """A part of a recipe whose questions are of a task."""

    task: Any = None  # the class of a part says which tasks it takes

    @property
    def form(self) -> Form:
        """The form of the questions, with the tools that the task gives."""
        return replace(super().form, tools=self.task.tools if self.task else None)


def placed(key: str, text: str, *places: str) -> Iterator[Mistake]:
    """Yield a mistake for each of `{question}` and `places` that a text does not contain exactly once."""
    for place in ("{question}", *places):
        if text.count(place) != 1:
            yield key, f"expected {place} exactly once, got {text!r}"
