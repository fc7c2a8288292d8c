"""Parsers of console output: of verl, which prints lines, and of open-instruct, which prints panels.

Other lines may stand between them. Parsing takes time linear in the text, and never raises.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

# a line of verl; a Ray actor puts its name before it
CONSOLE = re.compile(r"(?:^|\s)step:(\d+) - (.+)$", re.MULTILINE)
NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|nan|[-+]?inf"
PAIR = re.compile(rf"(.+?):\s*(?:np\.\w+\()?({NUMBER})\)?")  # numpy prints a number with its type
PANEL = re.compile(r"╭─+ Metrics ─+╮")  # the head of a panel of open-instruct, printed by rich
TRAINING_STEP = "training_step"  # the step of training; open-instruct's `global_step` counts episodes


def is_of_verl(text: str) -> bool:
    """Return whether a text has a line such as `step:10 - critic/rewards/mean:0.5 - …`."""
    return "step:" in text and bool(CONSOLE.search(text))


def of_verl(text: str) -> Iterator[tuple[float, Mapping[str, float]]]:
    """Yield the step and the numbers of each line that begins with a step."""
    for line in text.splitlines():
        if match := CONSOLE.search(line):
            pairs = (PAIR.fullmatch(part.strip()) for part in match[2].split(" - "))
            yield float(match[1]), {pair[1]: float(pair[2]) for pair in pairs if pair}


def is_of_open_instruct(text: str) -> bool:
    """Return whether a text has the head of a panel of metrics."""
    return bool(PANEL.search(text))


def of_open_instruct(text: str, step: str) -> Iterator[Mapping[str, float]]:
    """Yield metric -> number for each complete panel; `step` is the name of the metric with the step.

    A panel without a step, of an evaluation, gets the step of the panel before. A row of a panel is a
    category and `name: number | name: number`. rich continues a row in further lines without a category, and
    cuts a long name with a `…`: such names are left out.
    """
    rows: list[tuple[str, str]] | None = None  # rows of the present panel; None outside of a panel
    last: dict[str, float] = {}
    for line in text.splitlines():
        if PANEL.search(line):
            rows = []
        elif rows is not None and "╰" in line:
            numbers = dict(_of_panel(rows))
            last = {step: numbers[step]} if step in numbers else last
            yield last | numbers
            rows = None
        elif rows is not None and line.count("│") > 1:
            row = line.partition("│")[2].rpartition("│")[0]
            category, _, values = row.strip().partition("  ")
            if not row.startswith("   "):
                rows.append((category, values.strip()))
            elif rows:
                rows[-1] = (rows[-1][0], f"{rows[-1][1]} {row.strip()}")


def _of_panel(rows: Iterable[tuple[str, str]]) -> Iterator[tuple[str, float]]:
    """Yield `category/name` and number for each number of a panel; a row is its category and its other text.

    Numbers of the category `other` are named without it.
    """
    for category, values in rows:
        for part in values.split(" | "):
            pair = PAIR.fullmatch(part.strip())
            if pair and "…" not in category + pair[1]:
                yield pair[1] if category == "other" else f"{category}/{pair[1]}", float(pair[2])
