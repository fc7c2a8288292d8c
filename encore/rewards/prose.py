"""The one quantity that an answer in words states: `She makes 18 dollars every day.` says 18 dollars.

| an answer in words                    | quantity                                                  |
|---------------------------------------|-----------------------------------------------------------|
| `18 duck eggs left`                   | 18: the number, and at most LABEL words that name it      |
| `The answer is 18`, `Total: 18 eggs`  | 18: a verb that states it, or a colon, stands before it   |
| `the square of 18`, `approx 18`       | no quantity: there is no such verb                        |
| `at least 18`, `18 dozen`, `not 18`   | no quantity: a word changes, denies or leaves it open     |
| `18 or 19`, `18 + x`                  | no quantity: two numbers, or more than words              |

So `it exceeds 18` states no quantity, and neither does a verb that is not in STATING. The subject of the
sentence is not understood: `The square is 18` says 18.
"""

import re
from collections.abc import Container
from typing import NamedTuple

LONGEST = 200  # characters; a longer text is an argument, not an answer
# largest number of words after a number that name its quantity, outside a sentence (`18 duck eggs left`)
LABEL = 4
# letters, digits, stops and quotes; colon, hyphen and slash only where they join no numbers
WORDS = re.compile(
    r"(?:[A-Za-z0-9\s.,!'\"%$]|(?<=[A-Za-z]):(?=\s)|(?<=[A-Za-z])-(?=[A-Za-z])|(?<!\w)-(?=\d)|(?<=\d)/(?=\d))+"
)
NUMBER = re.compile(r"(?<![\w.,/$])(?P<money>\$\s?)?(?P<number>-?\d+(?:\.\d+)?(?:/\d+)?)(?![.,/]?\d)")
AFTER = re.compile(r"\s?(?:%|\s?(?:square |sq |cubic |cu )?[A-Za-z]+)")
# words that change a number, deny it or leave it open
CHANGES = """
zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy
eighty ninety hundred hundreds thousand thousands million millions billion billions trillion dozen dozens
gross score scores grand kilo mega giga milli micro nano myriad lakh lakhs crore crores mil mils
pair pairs couple half halves third thirds quarter quarters fourth fourths fifth fifths sixth sixths
eighth eighths tenth tenths hundredth hundredths double doubled twice triple tripled thrice
plus minus over divided multiplied added subtracted squared cubed root power factorial mod modulo base
negative infinity pi sin cos tan log ln exp sqrt
or nor not no never neither cannot wrong incorrect false instead rather unless if maybe perhaps unsure
least most than between up to through until above below under about around roughly approximately nearly almost
either except other another any some unknown impossible
what which who whom whose how why when where whether suppose assume
"""
CHANGING = frozenset(CHANGES.split())
# verbs after which a number is the sentence's statement
STATING = """
is are was were be equals have has had make makes made earn earns earned get gets got receive receives
received gain gains gained win wins won cost costs pay pays paid spend spends spent save saves saved need
needs needed require requires required owe owes owed take takes took use uses used buy buys bought sell
sells sold give gives gave eat eats ate drink drinks drank see sees saw read reads write writes wrote walk
walks walked run runs ran drive drives drove travel travels traveled work works worked grow grows grew rise
rises rose last lasts lasted weigh weighs weighed measure measures measured contain contains contained hold
holds held collect collects collected find finds found bake bakes baked plant plants planted leave leaves
left
"""
# words after a number that show that it belongs to another subject
BEING = frozenset({"is", "are", "was", "were", "be"})
STATED = re.compile(
    rf"(?:.*(?:\b(?:{'|'.join(STATING.split())})|:))?\s*(?:\b(?:by|exactly|only|now|just|a total of))?",
    re.IGNORECASE,
)
VOWEL = re.compile("[aeiou]")


class Quantity(NamedTuple):
    number: str
    unit: str  # the known unit after the number, or `\\$`; "" without a unit
    label: str = ""  # the word after the number if it is no known unit


def quantity(text: str, units: Container[str]) -> Quantity | None:
    """Return the only quantity of a text of words, or None; `units` are the known units.

    It takes linear time and never raises.
    """
    text = " ".join(text.replace("\\$", "$").replace("\\%", "%").replace("\u2019", "'").split())
    if len(text) > LONGEST or not WORDS.fullmatch(text):
        return None
    numbers = NUMBER.search(text)
    if not numbers or len(re.findall(r"\d+(?:[.,/]\d+)*", text)) > 1:
        return None
    before, behind = text[: numbers.start()].strip(), AFTER.match(text, numbers.end())
    unit = behind[0].strip() if behind and behind[0].split()[-1].lower() in units else ""
    after = text[numbers.end() + (len(behind[0]) if behind and unit else 0) :]
    labels = re.findall(r"[A-Za-z']+", after)
    if any(map(_changes, [*re.findall(r"[A-Za-z']+", before), *labels])):
        return None
    if not STATED.fullmatch(before) or BEING & {*map(str.lower, labels)}:
        return None
    if not before and len(labels) > LABEL:
        return None
    if numbers["money"]:
        return Quantity(numbers["number"], "\\$")
    return Quantity(numbers["number"], unit, labels[0] if labels and not unit else "")


def _changes(word: str) -> bool:
    """Return whether a word may change a number, by its meaning or as letters that stand for numbers."""
    plain = word.lower()
    if plain in CHANGING or plain.endswith("n't"):
        return True
    return word not in ("a", "A", "I", "by", "my") and (len(word) == 1 or not VOWEL.search(plain))
