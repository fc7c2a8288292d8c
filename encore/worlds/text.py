"""The text of the worlds: prompts, hashes that decide splits, the tokenizer and the chat template.

The tokenizer has one token for each character, tag or fixed phrase.
"""

from collections.abc import Iterable
from hashlib import blake2b
from re import escape, findall
from typing import Any

from encore.errors import UserError
from encore.worlds.protocol import World

RESPONSE = "{response}"  # the place of a response in a text that shows one
FEEDBACK = "{feedback}"  # the place of the words on a completion in a text that tells them
SPECIAL = ("<pad>", "<eos>", "<bos>", "<unk>")
TURNS = ("<user>", "<assistant>")

# TRL computes the loss between the generation markers only; a reply includes its end token.
CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{%- if message.role == 'assistant' %}"
    "{{- '<assistant>' }}{% generation %}{{- message.content + eos_token }}{% endgeneration %}"
    "{%- else %}{{- '<user>' + message.content }}{%- endif %}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<assistant>' }}{%- endif %}"
)


def prompt(template: str, question: str) -> str:
    """Return the template with the question filled in; braces other than `{question}` are plain text."""
    if template.count("{question}") != 1:
        raise UserError(f"template: expected {{question}} exactly once, got {template!r}")
    return template.replace("{question}", question)


def text_hash(text: str, person: bytes = b"") -> int:
    """Return a number from 0 to 2**64 - 1 fixed by the text; another `person` gives an independent number."""
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=8, person=person).digest()
    return int.from_bytes(digest, "big")


def length(world: World, text: str) -> int:
    """Return the number of tokens in a text of the world."""
    return len(findall(_pattern({*TURNS, *world.vocabulary}), text))


def _pattern(tokens: Iterable[str]) -> str:
    """Return a pattern that matches one token, the longest that fits, or else one character."""
    longest_first = sorted((t for t in tokens if len(t) > 1), key=lambda t: (-len(t), t))
    return "|".join([*map(escape, longest_first), r"[\s\S]"])


def tokenizer(worlds: Iterable[World], model_max_length: int = 1024) -> Any:
    """Return a PreTrainedTokenizerFast for all text of these worlds; anything else becomes `<unk>`.

    Tags such as `<think>` are ordinary tokens, so decoding with `skip_special_tokens` keeps them. Neither BOS
    nor EOS is added.
    """
    # imported here, because checks of recipes need the worlds but not the tokenizer
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast  # imported here for the same reason

    tokens = sorted({token for world in worlds for token in world.vocabulary})
    vocabulary = [*SPECIAL, *TURNS, *tokens]
    backend = Tokenizer(models.WordLevel({t: i for i, t in enumerate(vocabulary)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(_pattern((*TURNS, *tokens))), behavior="isolated")
    backend.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        eos_token="<eos>",
        bos_token="<bos>",
        unk_token="<unk>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=model_max_length,
        chat_template=CHAT_TEMPLATE,
    )
