r"""The form in which a question is put to a policy: a template of the recipe, or a chat template.

    template: "<user>{question}<assistant>"
    chat: true
    chat: {system: "Be brief.", user: "{question}\nReason step by step.", prefill: "<think>\n"}

The chat template belongs to the policy's tokenizer. A prompt may begin the answer: by a template that ends in
`<think>`, by the key `prefill`, by a chat template that does so itself, or by a problem that comes with a
beginning. Rewards and verifiers then read the answer with its beginning.
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

NUMBER = "number"  # column with the number by which a world finds a problem again; few worlds have it
PREFILL = "prefill"  # column with the beginning of the answer at the end of the prompt, if the form has one


@dataclass(frozen=True)
class Prompter:
    """A form of questions, whose function `fill` makes a prompt of a question."""

    fill: Callable[[str], str]
    prefill: str = ""  # the beginning of the answer, with which every prompt ends
    ends: tuple[int, ...] = ()  # tokens that end a reply, beside the policy's own ends

    def put(self, question: str, begun: str) -> str:
        """Return a question's prompt, which ends with `begun`, the problem's beginning of the reply.

        Raises UserError if the form also begins the reply.
        """
        if begun and self.prefill:
            raise UserError(
                f"task: its problems begin replies with {begun!r}, the prompt does with {self.prefill!r}; "
                "leave out one of them"
            )
        return self.fill(question) + begun

    def columns(self, begun: Sequence[str]) -> dict[str, list[str]]:
        """Return the column PREFILL for prompts that end with `begun`; {} if no prompt begins the answer."""
        return (
            {PREFILL: [self.prefill + beginning for beginning in begun]} if self.prefill or any(begun) else {}
        )


def of(form: Form, tokenizer: Any) -> Prompter:
    """Return the prompter for a form of the recipe.

    Raises UserError if the tokenizer has no chat template, or one that does not go with the recipe.
    """
    if form.chat is None:
        return plain(form.template)
    keys, prefill = form.chat, form.chat.prefill or ""
    chat = Chat(tokenizer, keys.system, form.tools() if form.tools else ())
    if chat.begun and begun(prefill):
        raise UserError(
            f"chat.prefill: the chat template itself begins replies with {chat.begun!r}; remove it"
        )

    def fill(question: str) -> str:
        request = prompt(keys.user or "{question}", question)
        return chat.prompt([{"role": "user", "content": request}]) + prefill

    return Prompter(fill, chat.begun + prefill, (chat.tokenizer.convert_tokens_to_ids(chat.end),))


def plain(template: str) -> Prompter:
    """Return the prompter for a template. Raises UserError for a template without `{question}`."""
    prompt(template, "")
    return Prompter(partial(prompt, template), begun(template))


def end_turns(tokenizer: Any) -> None:
    """Set the tokenizer's end of sequence to the token that ends a turn in its chat template.

    A base model may have a chat template and end its documents with another token.
    """
    if tokenizer.eos_token != (end := Chat(tokenizer).end):
        tokenizer.eos_token = end
