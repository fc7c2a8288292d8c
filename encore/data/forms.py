r"""How a question is put to a policy: by a template of the recipe, or by its tokenizer's chat template.

    template: "<user>{question}<assistant>"
    chat: true
    chat: {system: "Be brief.", user: "{question}\nReason step by step.", prefill: "<think>\n"}

A prompt may begin the answer: a template that ends in `<think>`, the key `prefill`, or a chat template that
does so itself; or the problem, if it comes with a beginning of its own. Rewards and verifiers then read the
answer with its beginning.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from encore.data.chat import Chat
from encore.errors import UserError
from encore.recipe.form import Form
from encore.worlds.answers import begun
from encore.worlds.text import prompt

NUMBER = "number"  # the column of that by which a world finds a problem again; of few worlds alone
PREFILL = "prefill"  # the column of what a prompt has begun of the answer; of forms that begin it alone


@dataclass(frozen=True)
class Prompter:
    """A form that makes a prompt of a question by its method `fill`."""

    fill: Callable[[str], str]
    prefill: str = ""  # with which every prompt ends: the beginning of the answer
    ends: tuple[int, ...] = ()  # tokens that end a reply, whatever else the policy ends its texts with

    def put(self, question: str, begun: str) -> str:
        """A question's prompt, with what its problem has begun of the reply.

        Raises UserError where the form begins it too.
        """
        if begun and self.prefill:
            raise UserError(
                f"task: its problems begin replies with {begun!r}, the prompt does with {self.prefill!r}; "
                "leave out one of them"
            )
        return self.fill(question) + begun

    def columns(self, begun: Sequence[str]) -> dict[str, list[str]]:
        """What prompts have beside question and answer, for rewards; `begun`: what each comes with."""
        return {PREFILL: [self.prefill + own for own in begun]} if self.prefill or any(begun) else {}


def of(form: Form, tokenizer: Any) -> Prompter:
    """Return what puts questions in a form of the recipe.

    Raises UserError where the tokenizer has no chat template, or one that does not go with the recipe.
    """
    if form.chat is None:
        return plain(form.template)
    keys, prefill = form.chat, form.chat.prefill or ""
    chat = Chat(tokenizer, keys.system)
    if chat.begun and begun(prefill):
        raise UserError(
            f"chat.prefill: the chat template itself begins replies with {chat.begun!r}; remove it"
        )

    def fill(question: str) -> str:
        request = prompt(keys.user or "{question}", question)
        return chat.prompt([{"role": "user", "content": request}]) + prefill

    return Prompter(fill, chat.begun + prefill, (chat.tokenizer.convert_tokens_to_ids(chat.end),))


def plain(template: str) -> Prompter:
    """Return what puts questions by a template. Raises UserError for one without `{question}`."""
    prompt(template, "")
    return Prompter(partial(prompt, template), begun(template))


def end_turns(tokenizer: Any) -> None:
    """Let the tokenizer's end of sequence be the end of a turn, as in its chat template.

    A base model may have a chat template and end its documents with another token.
    """
    if tokenizer.eos_token != (end := Chat(tokenizer).end):
        tokenizer.eos_token = end
