"""Two languages for the same scratchpad, token for token: `3+5=8,8+7=15` of world `chain` in words.

| chain | english                   | spanish                     |
|-------|---------------------------|-----------------------------|
| 0 … 4 | zero one two three four   | cero uno dos tres cuatro    |
| 5 … 9 | five six seven eight nine | cinco seis siete ocho nueve |
| + - = | plus minus is             | mas menos es                |

Every word is one token that ends with a space, so that no two tokens together spell a third; a number is
spelt digit by digit. `,` (written `, `) and the idle `.` belong to no language. Questions and answers stay in
digits, which belong to neither language, so that neither is nearer to them.
"""

import random
import re
from collections import Counter
from itertools import accumulate

from encore.worlds.answers import scratchpad

WORDS = {
    "english": "zero one two three four five six seven eight nine plus minus is",
    "spanish": "cero uno dos tres cuatro cinco seis siete ocho nueve mas menos es",
}
LANGUAGES = (*WORDS,)
SYMBOLS = "0123456789+-="
SEPARATOR = ", "
SPELT = {
    language: dict(zip(SYMBOLS, (f"{word} " for word in words.split()), strict=True))
    for language, words in WORDS.items()
}
VOCABULARY = (*(word for spelt in SPELT.values() for word in spelt.values()), SEPARATOR)

READ = {word.strip(): symbol for spelt in SPELT.values() for symbol, word in spelt.items()}
LANGUAGE = {word.strip(): language for language, spelt in SPELT.items() for word in spelt.values()}
PIECE = re.compile(rf"[A-Za-z]+ ?|{SEPARATOR}|[\s\S]")  # a piece of text that is read by itself
# a word of one of the languages, or of neither
WORD = re.compile(rf"[{re.escape(SYMBOLS)}]|[^\s,.{re.escape(SYMBOLS)}]+")


def other(language: str) -> str:
    return LANGUAGES[1 - LANGUAGES.index(language)]


def spell(text: str, language: str, switch: float, rng: random.Random) -> str:
    """Return `text` of world `chain` in words.

    After each word the language changes with probability `switch`.
    """
    spelt = []
    for character in text:
        if character in SYMBOLS:
            spelt.append(SPELT[language][character])
            language = other(language) if rng.random() < switch else language
        else:
            spelt.append(SEPARATOR if character == "," else character)
    return "".join(spelt)


def as_symbols(text: str) -> str:
    """Return `text` with the words of both languages replaced by the symbols of world `chain`."""
    return "".join(_readings(PIECE.findall(text)))


def read_ends(text: str, ends: list[int]) -> list[int]:
    """Return `ends`, offsets just past characters of `as_symbols(text)`, converted to offsets in `text`."""
    pieces = PIECE.findall(text)
    places = accumulate(map(len, pieces))
    past = [
        place
        for place, piece, reading in zip(places, pieces, _readings(pieces), strict=True)
        for _ in reading
    ]
    return [past[end - 1] for end in ends]


def _readings(pieces: list[str]) -> list[str]:
    return ["," if piece == SEPARATOR else READ.get(piece.rstrip(" "), piece) for piece in pieces]


def spoken(completion: str) -> Counter[str]:
    """Count the words of the scratchpad by language; words of neither language are counted under "".

    Bare digits and operators, and anything else but spaces, commas and dots, are words of neither language.
    """
    return Counter(LANGUAGE.get(word, "") for word in WORD.findall(scratchpad(completion)))
