r"""Other notations of a right answer, such as `.5`, `\frac{1}{2}` and `1/2` for `0.5`."""

import re
from fractions import Fraction

LONGEST = 40  # characters of a number that is written otherwise
PLAIN = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)?(?:\.\d+)?", re.ASCII)
RATIO = re.compile(r"(-?\d+)\s*/\s*(\d+)", re.ASCII)
IN_LATEX = re.compile(r"(-?)\\[dt]?frac\{(\d+)\}\{(\d+)\}", re.ASCII)
NAMES = (
    "as a decimal",
    "without the zero before its point",
    "as a fraction",
    "as a fraction of LaTeX",
    "with commas between thousands",
    "with a unit",
    "after x =",
    "between dollar signs",
    "in bold",
    "with a full stop",
    "with spaces around it",
)


def value(text: str) -> Fraction | None:
    """Return the number that a text writes as a whole number, decimal or fraction; None for other texts."""
    text = text.strip()
    if len(text) > LONGEST:
        return None
    if match := IN_LATEX.fullmatch(text):
        text = f"{match[1]}{match[2]}/{match[3]}"
    if match := RATIO.fullmatch(text):
        return Fraction(int(match[1]), int(match[2])) if int(match[2]) else None
    digits = any(character.isdecimal() for character in text)
    return Fraction(text.replace(",", "")) if digits and PLAIN.fullmatch(text) else None


def same(first: str, second: str) -> bool:
    """Return whether two answers are the same text apart from spaces, or the same number."""
    if "".join(first.split()) == "".join(second.split()):
        return True
    number = value(first)
    return number is not None and number == value(second)


def of(answer: str) -> dict[str, str]:
    """Return the name of each notation, as in NAMES -> the answer in it; notations of numbers for numbers."""
    texts = {
        "between dollar signs": f"${answer}$",
        "in bold": f"**{answer}**",
        "with a full stop": f"{answer}.",
        "with spaces around it": f"  {answer} ",
    }
    number = value(answer)
    return texts if number is None else texts | _of_number(answer, number)


def _of_number(answer: str, number: Fraction) -> dict[str, str]:
    texts = {"with a unit": f"{answer} cm", "after x =": f"x = {answer}"}
    above, below = number.numerator, number.denominator
    if below == 1:
        texts["as a decimal"] = f"{above}.0"
        if abs(above) >= 1000:
            texts["with commas between thousands"] = f"{above:,}"
        return texts
    texts["as a fraction"] = f"{above}/{below}"
    texts["as a fraction of LaTeX"] = f"{'-' if above < 0 else ''}\\frac{{{abs(above)}}}{{{below}}}"
    if decimal := _decimal(number):
        texts["as a decimal"] = decimal
        texts["without the zero before its point"] = re.sub(r"^(-?)0\.", r"\1.", decimal)
    return texts


def _decimal(number: Fraction) -> str:
    """Return a fraction as a decimal; "" if the decimal has no end within LONGEST digits."""
    for places in range(1, LONGEST):
        whole = number * 10**places
        if whole.denominator == 1:
            digits = f"{abs(whole.numerator):0{places + 1}d}"
            return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}"
    return ""
