r"""The final answer of a completion to a mathematical problem, or None.

The rules are strict: a reward that accepts a text that is no answer soon makes a policy write nothing else.

| completion                                             | final answer                          |
|--------------------------------------------------------|---------------------------------------|
| `<think>…</think><answer>8.</answer>`                  | `8.`: the tag's text                  |
| `<answer>The answer is $8$</answer>`                   | `$8$`                                 |
| `… so $x = \boxed {8}$.`, `… is $\boxed 8$.`           | `8`: the content of the box           |
| `… is \fbox{8}.`                                       | `8`, if there is no `\boxed`          |
| `… 3+5=8` and on the last line `#### 8`                | `8`, as GSM8K marks it                |
| `<think>\boxed{8}</think> It is 9.`                    | None: thinking is not answering       |
| `<think>\boxed{8}`                                     | None: the thinking has no end         |
| `\boxed{7} or \boxed{8}`                               | None: two different boxes             |
| `\boxed{\boxed{8}`                                     | None: a box is not closed             |
| `I would never say \boxed{8}`                          | None: denied in its own clause        |
| `16-8 = 8 will not be used \boxed{8}`                  | `8`: the clause works it out itself   |
| `Is it \boxed{8}? No.`, `It is \boxed{8}, is it?`      | None: a question is no answer         |
| `It is \boxed{8}. No, that is wrong.`                  | `8`: other sentences are not read     |
| `\verb|\boxed{8}|`                                     | None: shown as it is written          |
| `<answer>$7$, no, $8$</answer>`                        | None: two displays                    |
| `#### 7` on one line, `#### 8` on the last             | None: two different marks             |
| `8`                                                    | None: no box, tag or mark             |

The functions are string searches in linear time and never raise.
"""

import re

from encore.worlds.answers import answer

LONGEST = 500  # characters of an answer; a longer text is no answer
# a box; without braces its content is the beginning of a formula: "write \boxed here" has none
BOX = re.compile(r"\\boxed(?![A-Za-z])\s{0,3}(?:(\{)|(?=[-+]?(?:\.?\d|\\[A-Za-z])|[A-Za-z](?![A-Za-z])))")
FRAME = re.compile(r"\\fbox\s{0,3}(\{)")
AFTER_BARE = re.compile(r"[$\n]|\\[)\]]")  # marks the end of a box without braces
BLANK = re.compile(r"(?:\\[hv]?phantom\{[^{}]*\}|\\[,;:! ]|[\s?_])*")
MARK = "####"
DOLLARS = re.compile(r"(?<!\\)\$(?=\d)")
NUMBER = re.compile(r"\\?\$?-?[\d.,]+%?")
PHRASE = re.compile(
    r"(?:so|thus|hence|therefore)?,?\s{0,3}(?:the\s)?(?:final\s)?(?:answer|result|solution)"
    r"\s{0,3}(?:is|=|:)?:?\s{0,3}",
    re.IGNORECASE,
)
DENIAL = re.compile(
    r"\b(?:not|never|neither|nor|cannot|wrong|incorrect|false|instead of|rather than)\b|n't\b", re.IGNORECASE
)
CLAUSE = re.compile(r"\n|[.;:!?,](?=\s|$)|\b(?:but|so|thus|hence|therefore)\b", re.IGNORECASE)
CLAUSE_LENGTH = 200  # characters searched before a box for a denial, and after it for a question mark
SENTENCE = re.compile(r"[\n?]|[.!](?=\s|$)")
CALCULATED = re.compile(r"<<[^<>]*>>")  # GSM8K's calls of a calculator, between the sign and the result
LAYOUT = re.compile(r"[\s$\\,]")  # characters by which two spellings of one number may differ
VERBATIM = re.compile(rf"\\verb\*?([^\sA-Za-z*]).{{0,{LONGEST}}}?\1")


def final_answer(completion: str) -> str | None:
    """Return the text of the final answer by the rules in the table above, or None."""
    outside = _after_thinking(completion)
    if outside is None:
        return None
    outside = VERBATIM.sub(" ", outside)
    if "<answer>" in outside or "</answer>" in outside:
        tagged = answer(outside)
        if tagged is None or not tagged:
            return None
        boxes = _boxes(tagged)
        return _display(_marked(tagged) or tagged) if boxes == [] else _box(tagged, boxes)
    boxes = _boxes(outside)
    return _marked(outside) if boxes == [] else _box(outside, boxes)


def reference(answer: str) -> str:
    """Return the answer in a data set's `answer` column.

    It is the last box of a solution, the text after GSM8K's last mark, or else the whole text.
    """
    return last_box(answer) or _after_mark(answer) or answer


def _after_thinking(completion: str) -> str | None:
    """Return the text after the thinking, all text without thinking; None if the thinking has no end."""
    if completion.rfind("<think>") > completion.rfind("</think>"):
        return None
    return completion.rpartition("</think>")[2]


def _boxes(text: str) -> list[str] | None:
    r"""Return the contents of all outermost `\boxed{…}` or, if there are none, of all `\fbox{…}`.

    Returns None if a box is not closed, or is longer than an answer.
    """
    contents, start, kind = [], 0, _kind(text)
    while match := kind.search(text, start):
        end = _end(text, match.end()) if match[1] else _bare_end(text, match.end())
        if end is None:
            return None
        contents.append(text[match.end() : end].strip() if match[1] else _bare(text[match.end() : end]))
        start = end + 1
    return contents


def _kind(text: str) -> re.Pattern[str]:
    return BOX if BOX.search(text) else FRAME


def _end(text: str, start: int) -> int | None:
    """Return where the brace before `start` is closed; None if that is not within LONGEST characters."""
    depth = 1
    for place in range(start, min(len(text), start + LONGEST + 1)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return None


def _bare_end(text: str, start: int) -> int | None:
    """Return where the content of a box without braces ends; None if it is too long."""
    if match := AFTER_BARE.search(text, start, start + LONGEST + 1):
        return match.start()
    return len(text) if len(text) - start <= LONGEST else None


def _bare(content: str) -> str:
    """Return the content of a box without braces, without the full stop of its sentence."""
    return content.strip().rstrip(".,;").strip()


def last_box(text: str) -> str | None:
    r"""Return the content of the last `\boxed{…}` of a reference solution.

    The result is None if there is no box, or the box is not closed.
    """
    start = max((match.start() for match in _kind(text).finditer(text)), default=len(text))
    contents = _boxes(text[start:])
    return contents[-1] if contents else None


def _box(text: str, contents: list[str] | None) -> str | None:
    """Return the content of the only box of `text`, or of several equal boxes.

    The result is None if the box is part of a question, or is denied. A blank box, which a question asks to
    fill, does not count.
    """
    contents = [content for content in contents or [] if not BLANK.fullmatch(content)]
    if not contents or len(set(contents)) > 1:
        return None
    content, start = contents[0], [*_kind(text).finditer(text)][-1].start()
    if _asked(text, start) or (len(contents) == 1 and _denied(text[:start], content)):
        return None
    inner = _boxes(content)
    return inner[0] if inner and content.startswith("\\") and content.endswith("}") else content


def _asked(text: str, start: int) -> bool:
    """Return whether the sentence of the last box, which begins at `start`, ends in a question mark.

    Nothing else is read after a box: other sentences do not count.
    """
    box = _kind(text).match(text, start)
    assert box is not None
    end = (_end if box[1] else _bare_end)(text, box.end())
    stop = SENTENCE.search(text, end or 0, (end or 0) + CLAUSE_LENGTH)
    return stop is not None and stop[0] == "?"


def _denied(before: str, content: str) -> bool:
    """Return whether the clause before a box denies its content.

    A clause that computes the content, such as `= 8`, does not deny it, unless the denial ends the clause.
    """
    before = before[-CLAUSE_LENGTH:]
    clause = before[max((match.end() for match in CLAUSE.finditer(before)), default=0) :]
    denials = [*DENIAL.finditer(clause)]
    if not denials:
        return False
    stated, wanted = (LAYOUT.sub("", part) for part in (CALCULATED.sub("", clause), content))
    worked_out = re.search(rf"={re.escape(wanted)}(?![\d.]*\d)", stated)
    return not worked_out or not re.search(r"\w", clause[denials[-1].end() :])


def _after_mark(text: str) -> str | None:
    """Return the text after the last mark of `text`, on the mark's line; None without a mark."""
    _, marked, rest = text.rpartition(MARK)
    content = rest.partition("\n")[0].strip()
    return content if marked and 0 < len(content) <= LONGEST else None


def _marked(text: str) -> str | None:
    """Return the answer after a mark on the last line of `text`.

    The result is None without such a mark, or if an earlier mark has a different number.
    """
    text = text.rstrip()
    content = _after_mark(text[text.rfind("\n") + 1 :])
    before = [part.partition("\n")[0].strip() for part in text.split(MARK)[1:-1]] if content else []
    return None if any(NUMBER.fullmatch(other) and other != content for other in before) else content


def _display(text: str) -> str | None:
    """Return the answer in the text of a tag without a box, without a phrase such as "the answer is".

    The result is None if the text has several displays (`$…$`), or is too long.
    """
    phrase = PHRASE.match(text)
    rest = (text[phrase.end() :] if phrase else text).strip()
    if rest.count("$") == 1:
        rest = DOLLARS.sub(r"\\$", rest)
    displays = re.findall(r"\$\$?|\\\(|\\\)|\\\[|\\\]", rest.replace("\\$", ""))
    return rest if len(displays) in (0, 2) and len(rest) <= LONGEST else None
