"""Conversations as the chat template of a model's tokenizer writes them.

They are written as texts. `token_ids.prompt_ids` gives the same tokens as `apply_chat_template`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jinja2.exceptions import TemplateError

from encore.data.token_ids import prompt_ids
from encore.errors import UserError

Message = dict[str, str]  # role, content
# the text that a policy reads since its last reply, and its next reply without the token that ends it
Exchange = tuple[str, str]

THINK = "<think>"
TODAY = datetime(2024, 7, 26)  # Llama 3.1's default date; with the true date prompts would change overnight
PROBE = "Two 2."  # a content that no template changes, and that no template contains


class Chat:
    """The chat template of `tokenizer`; `system` is used for conversations without a system prompt.

    `tools`: the JSON schemas of the tools that the template tells the policy of.
    `end` is the token that ends a reply, as text. `begun` is the beginning that the template itself gives to
    a reply; the templates of some reasoning models begin it with `<think>`. Raises UserError if there is no
    chat template, if it refuses a system prompt, if the policy would not read of a tool, or if template and
    tokenizer begin a text differently.
    """

    def __init__(self, tokenizer: Any, system: str | None = None, tools: Sequence[Any] = ()):
        if not tokenizer.chat_template:
            raise UserError("chat: the model's tokenizer has no chat template; write the turns as a template")
        self.tokenizer, self.system, self.tools = tokenizer, system, [*tools]
        request, answer = {"role": "user", "content": PROBE}, {"role": "assistant", "content": PROBE}
        prompt = self.prompt([request])
        for tool in self.tools:
            if (name := tool["function"]["name"]) not in prompt:
                raise UserError(
                    f"chat: the model's chat template shows no tools, so the policy would not know {name}; "
                    "describe the tools in chat.system"
                )
        header = prompt.rpartition(PROBE)[2]
        self.begun = header[header.index(THINK) :] if THINK in header else ""
        self._tail = self._render([request, answer], reply=False).rpartition(PROBE)[2]
        special = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
        special -= {tokenizer.unk_token_id}  # the token of unknown words ends nothing
        behind = tokenizer(self._tail, add_special_tokens=False)["input_ids"]
        end = next((number for number in behind if number in special), tokenizer.eos_token_id)
        self.end: str = tokenizer.convert_ids_to_tokens(end)
        plain = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        if (ids := prompt_ids([prompt], tokenizer)[0]) != plain:
            raise UserError(
                f"chat: the tokenizer begins every text with {tokenizer.decode(ids[:1])}, its chat template "
                "does not; what the model was trained with is unclear: write the turns as a template"
            )

    def prompt(self, conversation: Sequence[Message]) -> str:
        """Return the text after which the reply to `conversation` begins."""
        return self._render(conversation, reply=True)

    def exchanges(self, conversation: Sequence[Message]) -> list[list[Exchange]]:
        """Return the replies of a conversation as documents to learn from, each of one exchange or more.

        There is one document if the template writes a turn the same way whatever follows. Some templates
        leave out the thinking of earlier replies: then each reply has its own document, after the text that a
        policy will see before it. If the template itself begins the thinking, a reply without thinking is
        left out.
        """
        documents: list[list[Exchange]] = []
        before = None  # the text of the last document
        for place, turn in enumerate(conversation):
            if turn["role"] != "assistant":
                continue
            prompt = self.prompt(conversation[:place])
            reply = self._reply(prompt, conversation[: place + 1])
            if reply is None:
                before = None
                continue
            if before is not None and prompt.startswith(before):
                documents[-1].append((prompt.removeprefix(before), reply))
            else:
                documents.append([(prompt, reply)])
            before = prompt + reply + self.end
        return documents

    def _reply(self, prompt: str, conversation: Sequence[Message]) -> str | None:
        """Return the last turn as the template writes it, or unchanged if the template leaves out a part.

        None if the template itself begins the thinking, and the turn has none.
        """
        content = conversation[-1]["content"]
        written = self._render(conversation, reply=False)
        if written.startswith(prompt) and written.endswith(self._tail):
            whole = written.removeprefix(prompt).removesuffix(self._tail)
            if content.strip() in whole:
                return whole + (self._tail.partition(self.end)[0] if self.end in self._tail else "")
        if not self.begun or "</think>" in self.begun:
            return content
        if not content.startswith(THINK):
            return None
        return content.removeprefix(THINK).removeprefix(self.begun.removeprefix(THINK))

    def _render(self, conversation: Sequence[Message], reply: bool) -> str:
        turns = [*conversation]
        if self.system is not None and turns[0]["role"] != "system":
            turns.insert(0, {"role": "system", "content": self.system})
        try:
            return self.tokenizer.apply_chat_template(
                turns,
                tokenize=False,
                tools=self.tools or None,
                add_generation_prompt=reply,
                strftime_now=TODAY.strftime,  # replaces the function that gives templates the date
            )
        except (TemplateError, TypeError, ValueError) as error:
            why = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UserError(f"chat: the model's chat template refuses a conversation: {why}") from error
