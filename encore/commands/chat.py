"""`encore chat`: a model answers questions, token by token, by transformers' own generate."""

import sys
from collections.abc import Iterable
from typing import Any

from encore.commands.models import named
from encore.recipe.machine import HubModel
from encore.runtime.environment import quiet_environment
from encore.worlds import prompt


def converse(
    model: str, questions: Iterable[str], template: str | None, tokens: int, temperature: float
) -> None:
    """Print an answer to each question. The model sees each question alone, without the earlier ones.

    `template` is a text with {question}. If it is None, the chat template of the model's tokenizer is used
    or, if there is no chat template, the question alone.
    """
    source = named(model)
    quiet_environment(names_hub=isinstance(source, HubModel))
    # imported here, because torch reads the environment, which is set only now
    from transformers import TextStreamer

    from encore.models import language_model  # imported here for the same reason

    located = language_model.locate(source)
    tokenizer, policy = (
        language_model.load_tokenizer(located),
        language_model.load_for_inference(located, "float32"),
    )
    drawn: dict[str, Any] = (
        {"do_sample": True, "temperature": temperature} if temperature else {"do_sample": False}
    )
    streamer = TextStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True)
    for question in questions:
        text = _put(question.rstrip("\n"), tokenizer, template)
        encoded = tokenizer(text, return_tensors="pt", add_special_tokens=False, return_token_type_ids=False)
        policy.generate(
            **encoded.to(policy.device), **drawn, max_new_tokens=tokens, streamer=streamer,
            pad_token_id=tokenizer.pad_token_id,
        )  # fmt: skip
        sys.stdout.flush()


def _put(question: str, tokenizer: Any, template: str | None) -> str:
    if template is not None:
        return prompt(template, question)
    if tokenizer.chat_template is None:
        return question
    turns = [{"role": "user", "content": question}]
    return tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
