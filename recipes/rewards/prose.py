"""The one quantity that an answer in words states: `She makes 18 dollars every day.` says 18 dollars.

None is read where the words could change the number, deny it or leave it open (`at least 18`, `18 dozen`,
`not 18`, `18 or so`), where there are two numbers, and where there is more than words, such as a formula.
"""

import re
from collections.abc import Container
from typing import NamedTuple

LONGEST = 200  # characters; more is an argument, not an answer
# letters, digits, stops and quotes; a colon, hyphen or slash only where it joins no numbers
WORDS = re.compile(
    r"(?:[A-Za-z0-9\s.,!'\"%$]|(?<=[A-Za-z]):(?=\s)|(?<=[A-Za-z])-(?=[A-Za-z])|(?<!\w)-(?=\d)|(?<=\d)/(?=\d))+"
)
NUMBER = re.compile(r"(?<![\w.,/$])(?P<money>\$\s?)?(?P<number>-?\d+(?:\.\d+)?(?:/\d+)?)(?![.,/]?\d)")
AFTER = re.compile(r"\s?(?:%|\s?(?:square |sq |cubic |cu )?[A-Za-z]+)")
# words that change a number, deny it or leave it open
CHANGES = """
zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy
eighty ninety hundred hundreds thousand thousands million millions billion billions trillion dozen dozens
pair pairs couple half halves third thirds quarter quarters fourth fourths fifth fifths sixth sixths
eighth eighths tenth tenths hundredth hundredths double doubled twice triple tripled thrice
plus minus over divided multiplied added subtracted squared cubed root power factorial mod modulo base
negative infinity pi sin cos tan log ln exp sqrt
or nor not no never neither cannot wrong incorrect false instead rather unless if maybe perhaps unsure
least most than between up to through until above below under about around roughly approximately nearly almost
either except other another any some unknown impossible
"""
CHANGING = frozenset(CHANGES.split())
VOWEL = re.compile("[aeiou]")


class Quantity(NamedTuple):
    number: str
    unit: str  # what follows it, or `\\$`; "" where nothing does


def quantity(text: str, units: Container[str]) -> Quantity | None:
    """The one quantity of a text of words, in which `units` are known; linear time, never raises."""
    text = " ".join(text.replace("\\$", "$").replace("\\%", "%").replace("\u2019", "'").split())
    if len(text) > LONGEST or not WORDS.fullmatch(text):
        return None
    found = NUMBER.search(text)
    if not found or len(re.findall(r"\d+(?:[.,/]\d+)*", text)) > 1:
        return None
    behind = AFTER.match(text, found.end())
    unit = behind[0].strip() if behind and behind[0].split()[-1].lower() in units else ""
    rest = text[: found.start()] + " " + text[found.end() + (len(behind[0]) if behind and unit else 0) :]
    if any(_changes(word) for word in re.findall(r"[A-Za-z']+", rest)):
        return None
    return Quantity(found["number"], "\\$" if found["money"] else unit)


def _changes(word: str) -> bool:
    """Whether a word may change a number: by what it means, or as letters that stand for numbers."""
    plain = word.lower()
    if plain in CHANGING or plain.endswith("n't"):
        return True
    return word not in ("a", "A", "I", "by", "my") and (len(word) == 1 or not VOWEL.search(plain))
