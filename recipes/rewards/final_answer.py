r"""The one final answer of a completion to a mathematical problem, or None.

Strict, for a reward that accepts what is no answer is soon all that a policy writes:

| completion                                             | final answer                          |
|--------------------------------------------------------|---------------------------------------|
| `<think>…</think><answer>8.</answer>`                  | `8.`: the tag's text                  |
| `<answer>The answer is $8$</answer>`                   | `8`                                   |
| `… so $x = \boxed {8}$.`                               | `8`: the content of the box           |
| `<think>\boxed{8}</think> It is 9.`                    | none: thinking is not answering       |
| `<think>\boxed{8}`                                     | none: the thinking has no end         |
| `\boxed{7} or \boxed{8}`                               | none: two different boxes             |
| `\boxed{\boxed{8}`                                     | none: a box is not closed             |
| `I would never say \boxed{8}`                          | none: denied in its own clause        |
| `<answer>$7$, no, $8$</answer>`                        | none: two displays                    |
| `8`                                                    | none: neither box nor tag             |

String searches in linear time; never raises.
"""

import re

from recipes.worlds.answers import answer
from recipes.worlds.boxes import BOX, LONGEST, boxes

PHRASE = re.compile(
    r"(?:so|thus|hence|therefore)?,?\s{0,3}(?:the\s)?(?:final\s)?(?:answer|result|solution)"
    r"\s{0,3}(?:is|=|:)?:?\s{0,3}",
    re.IGNORECASE,
)
DENIAL = re.compile(
    r"\b(?:not|never|neither|nor|cannot|wrong|incorrect|false|instead of|rather than)\b|n't\b", re.IGNORECASE
)
CLAUSE = re.compile(r"[.;:!?,\n](?=\s|$)|\b(?:but|so|thus|hence|therefore)\b")
CLAUSE_LENGTH = 200  # characters before a box in which a denial is looked for


def final_answer(completion: str) -> str | None:
    """The text of the final answer; see the table above."""
    outside = _after_thinking(completion)
    if outside is None:
        return None
    if "<answer>" in outside or "</answer>" in outside:
        tagged = answer(outside)
        if tagged is None or not tagged:
            return None
        return _box(tagged) if BOX.search(tagged) else _display(tagged)
    return _box(outside)


def _after_thinking(completion: str) -> str | None:
    """What follows the thinking; all of it where there is none, None where the thinking has no end."""
    if completion.rfind("<think>") > completion.rfind("</think>"):
        return None
    return completion.rpartition("</think>")[2]


def _box(text: str) -> str | None:
    """The content of the one box of `text`, or of several alike, unless its own clause denies it."""
    contents = boxes(text)
    if not contents or len(set(contents)) > 1:
        return None
    before = text[: [*BOX.finditer(text)][-1].start()][-CLAUSE_LENGTH:] if len(contents) == 1 else ""
    clause = before[max((match.end() for match in CLAUSE.finditer(before)), default=0) :]
    if DENIAL.search(clause):
        return None
    inner = boxes(contents[0])
    return inner[0] if inner and contents[0].startswith("\\") and contents[0].endswith("}") else contents[0]


def _display(text: str) -> str | None:
    """The answer in a tag without a box: its only display behind a phrase such as "the answer is", or all."""
    phrase = PHRASE.match(text)
    rest = (text[phrase.end() :] if phrase else text).strip()
    displays = re.findall(r"\$\$?|\\\(|\\\)|\\\[|\\\]", rest.replace("\\$", ""))
    return rest if len(displays) in (0, 2) and len(rest) <= LONGEST else None
