r"""Mathematical answers in a normal form, so that equal answers are distinguished from similar ones.

`form` reads an answer as a number or expression, perhaps with a unit, or as a list, set, tuple, interval,
union, equation or inequality of them. Where math-verify is lenient, this is strict, and symmetric:

| not equal                     | because                                        |
|-------------------------------|------------------------------------------------|
| `5=8` and `8`                 | an equation is no number (`x=8` is: x alone)   |
| `(1,2)` and `\{1,2\}`         | a tuple or interval is no set                  |
| `2,2` and `2`                 | a list has a length                            |
| `5\%` and `5`, `5 cm`, `5 m`  | percent always counts, units where both have one |
| `1101_2` and `1101_3`, `52`   | digits in a base are these digits in this base |
| `3:30`, `x \mod 7`, `(x)'`    | equal to themselves alone                      |
| `90^\circ`, `90` radians      | a unit that is not known is another one        |
| `a \approx b` and `a`         | what is no expression equals its own text alone|
| `2/0` and `1/0`               | neither has a value                            |
| `E` and `e`                   | letters have a case                            |

Equal answers are, for example, `x>2` and `(2,\infty)`; `2\le x\le 3` and `[2,3]`; `1\,000`, `1e3` and `1000`;
`45°` and `45`; `18 dollars` and `18`; `\varnothing` and `\emptyset`; `\pm 5` and `5,-5`; `1 \text{ and } 2`
and `1,2`; `√2` and `\sqrt2`; `18` and words that state it (`prose`). Numbers and expressions that differ as
text are left to computer algebra (`math_answers`).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from encore.rewards.answer_text import balanced, expression, normal
from encore.rewards.prose import LABEL, quantity

# each line has one unit in all its spellings
UNITS = """
dollar dollars usd \\$
cent cents
euro euros
degree degrees ^\\circ
percent %
mm millimeter millimeters
cm centimeter centimeters
m meter meters metre metres
km kilometer kilometers
inch inches in
foot feet ft
yard yards yd
mile miles mi
second seconds s sec
minute minutes min
hour hours h hr
day days
week weeks
month months
year years
g gram grams
kg kilogram kilograms
pound pounds lb lbs
ounce ounces oz
liter liters litre litres l
ml milliliter milliliters
mph
radian radians rad
unit units
"""
UNIT = {spelling: line.split()[0] for line in UNITS.strip().splitlines() for spelling in line.split()}
POWER = {"square": "^2", "sq": "^2", "cubic": "^3", "cu": "^3"}
WITH_UNIT = re.compile(
    r"(?P<value>.*[\d})!.]|.*\\pi)\s*(?P<sure>\^\\circ|%|\\\$|(?:\s|\x00)\s*(?P<power>square|sq|cubic|cu)?\.?\s*(?P<name>[A-Za-z]+)\x00?"
    r"(?:\^\{?(?P<to>[23])\}?)?)\x00?",
    re.DOTALL,
)
ONLY_ITSELF = re.compile(
    r"\d \d|:|\\[pb]?mod|'|\\prime|\\ldots|\\dots|\\cdots|\d_\w|\\overline|\\bar|\\to|\\Rightarrow|\\implies"
    r"|\\or|\\text"
)
AND = r"\s*\x00\s*and\s*\x00\s*|\s+and\s+"
PLUS_MINUS = re.compile(r"\\pm(?![A-Za-z])")
OTHER = "?"  # put before the name of an unknown unit
VARIABLE = r"(?:[A-Za-z]|\\[a-z]+)(?:_\{?\w+\}?)?(?:\([a-z]\))?"
RELATION = re.compile(r"\\le(?![a-z])|\\ge(?![a-z])|<|>")
PROSE = re.compile(
    r"^(?:[Yy]es|YES|[Nn]o|NO)$|(?<![\\A-Za-z{])[A-Za-z]{4,}|(?<![\\A-Za-z])[A-Za-z]+\s+[A-Za-z]{2,}"
)


class Value(NamedTuple):
    """A number or an expression; computer algebra compares it with a value of another text."""

    text: str
    unit: str = ""


class Word(NamedTuple):
    """A text that is equal to the same text alone, or to the one number that it states in words.

    `foreign`: some of the text can be read neither as words nor as an expression.
    """

    text: str
    number: Value | None = None
    foreign: bool = False


@dataclass(frozen=True)
class Group:
    """Several forms; `kind` is list, set, union, equation, or the two brackets of a tuple or interval."""

    kind: str
    parts: tuple["Form", ...]

    @property
    def ordered(self) -> bool:
        return self.kind not in ("list", "set", "union", "equation")


Form = Value | Word | Group


def form(answer: str) -> Form | None:
    """Return the normal form of an answer; None if it is empty or its braces are not balanced."""
    text = normal(answer)
    return _form(text) if text.replace("\x00", "").strip() and balanced(text) else None


def _form(text: str) -> Form:
    text = text.strip()
    while text.startswith("{") and text.endswith("}") and _closes(text):
        text = text[1:-1].strip()
    if (parts := _split(text, r"\\cup(?![a-z])")) and len(parts) > 1:
        return Group("union", tuple(map(_form, parts)))
    if text.startswith("\\{") and text.endswith("\\}") and _closes(text[1:-2] + "}"):
        return Group("set", tuple(_members(map(_form, _split(text[2:-2], ",")))))
    if (
        text[:1] in "(["
        and text[-1:] in ")]"
        and _closes(text)
        and len(inside := _split(text[1:-1], ",")) > 1
    ):
        return Group(text[0] + text[-1], tuple(map(_form, inside)))
    if PROSE.search(text) and (number := _in_words(text)):
        return Word(" ".join(text.split()).casefold(), number)
    if len(members := _listed(text)) > 1:
        return Group("list", tuple(members))
    if len(PLUS_MINUS.findall(text)) == 1 and not PROSE.search(text.replace("\x00", " ")):
        return Group("list", tuple(_form(PLUS_MINUS.sub(sign, text)) for sign in "+-"))
    if interval := _inequality(text):
        return interval
    sides = _split(text, "=")
    if len(sides) == 2 and all(side.strip() for side in sides):
        if re.fullmatch(VARIABLE, sides[0].strip()):
            return _form(sides[1])
        return Group("equation", tuple(map(_form, sides)))
    return _value(text)


def _listed(text: str) -> list[Form]:
    """Return the members of a list: the texts between commas, and on both sides of a last `and`.

    A member that is a list itself, as `\\pm 5` is, gives its own members.
    """
    *before, last = _split(text, ",")
    sides = [side for side in _split(last, AND) if side.strip()]
    if not before and len(sides) < 2:
        return []
    ends = [_form(side) for side in sides or [last]]
    if len(sides) > 1 and any(isinstance(end, Word) for end in ends):
        ends = [_value(last)]
    return _members([*map(_form, before), *ends])


def _members(forms: Iterable[Form]) -> list[Form]:
    """Return the forms; each list is replaced by its members."""
    return [
        member
        for part in forms
        for member in (part.parts if isinstance(part, Group) and part.kind == "list" else (part,))
    ]


def _value(text: str) -> Form:
    unit = ""
    if text.startswith("\\$"):
        text, unit = text[2:].strip(), "dollar"
    elif match := WITH_UNIT.fullmatch(text):
        name = match["name"] or match["sure"]
        if known := UNIT.get(name if len(name) == 1 else name.lower()):
            power = POWER.get(match["power"] or "", "") or (f"^{match['to']}" if match["to"] else "")
            text, unit = match["value"].strip(), known + power
    plain = " ".join(text.replace("\x00", " ").split())
    written = re.sub(r"(?<![A-Za-z])\s+|\s+(?![A-Za-z])", "", plain)
    if PROSE.search(plain):
        return Word(plain.casefold())
    if "=" in plain or ONLY_ITSELF.search(plain):
        return Word(plain)
    if not expression(plain):
        return Word(written, foreign=True)
    return _in_words(plain) or Value(written.removeprefix("+"), unit)


def _in_words(text: str) -> Value | None:
    """Return the number that a text states in words, with its unit if the unit is known."""
    text = text.replace("\x00", " ")
    said = quantity(text, UNIT) if re.search(r"\d", text) and re.search(r"[a-z]", text) else None
    if said is None:
        return None
    value = _value(
        f"{said.unit}{said.number}" if said.unit == "\\$" else f"{said.number} {said.unit}".strip()
    )
    if not isinstance(value, Value):
        return None
    return value if value.unit or not said.label else value._replace(unit=f"{OTHER}{said.label.lower()}")


def _inequality(text: str) -> Form | None:
    """Return `x>2` as `(2,\\infty)`, `2\\le x<3` as `[2,3)`; None if it is no inequality of one variable."""
    signs = [{"\\le": "<=", "\\ge": ">="}.get(sign, sign) for sign in RELATION.findall(text)]
    sides = [side.strip() for side in RELATION.split(text)]
    lowest, highest = Value("-\\infty"), Value("\\infty")
    if len(signs) == 1:
        if re.fullmatch(VARIABLE, sides[1]) and not re.fullmatch(VARIABLE, sides[0]):
            sides, signs = sides[::-1], [signs[0].translate(str.maketrans("<>", "><"))]
        if not re.fullmatch(VARIABLE, sides[0]) or not sides[1]:
            return None
        closed = signs[0].endswith("=")
        if signs[0][0] == ">":
            return Group("[)" if closed else "()", (_form(sides[1]), highest))
        return Group("(]" if closed else "()", (lowest, _form(sides[1])))
    if len(signs) == 2 and signs[0][0] == signs[1][0] and re.fullmatch(VARIABLE, sides[1]):
        if signs[0][0] == ">":
            sides, signs = sides[::-1], signs[::-1]
        brackets = ("[" if signs[0].endswith("=") else "(") + ("]" if signs[1].endswith("=") else ")")
        return Group(brackets, (_form(sides[0]), _form(sides[2])))
    return None


def _split(text: str, separator: str) -> list[str]:
    """Return `text` cut at `separator`, a regular expression, where no bracket is open."""
    parts, depth, last, place = [], 0, 0, 0
    pattern = re.compile(separator)
    while place < len(text):
        step = 2 if text[place] == "\\" and text[place + 1 : place + 2] in ("{", "}") else 1
        character = text[place : place + step][-1]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0 and (match := pattern.match(text, place)):
            parts.append(text[last:place])
            place = last = match.end()
            continue
        place += step
    return [*parts, text[last:]]


def _closes(text: str) -> bool:
    """Return whether the bracket at the start of `text` is closed by its last character."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return place == len(text) - 1
    return False


def letters(text: str) -> set[str]:
    """Return the letters of an expression, without commands and without e and i, which may be constants."""
    return set(re.findall(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", " ", text))) - {"e", "i"}


def copied(answer: str, question: str, gold: str) -> bool:
    """Return whether an answer copies an expression or sentence of the question.

    The dataset's own answer is not a copy.
    """
    copy, asked, expected = (re.sub(r"\s", "", normal(text)) for text in (answer, question, gold))
    composed = re.search(r"[+*/^=<>]|(?<=.)-|\\[a-zA-Z]", copy) or len(answer.split()) > LABEL
    return bool(composed) and copy != expected and copy in asked
