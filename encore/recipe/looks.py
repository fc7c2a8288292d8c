"""The looks of a group-sequential run: after so many seeds its claims are judged, and what is decided stops.

Here because both need it: the workflow, which plans the seeds, and the analysis, which judges them.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

LOOKS = (8, 16, 32)  # seeds, counted from the recipe's first
AUTO = "auto"  # in place of a number of seeds: from look to look
FOLDER = "looks"  # beside the arms' folders, so no arm may have the name
LOOK = f"results/{{recipe}}/{{scale}}/{FOLDER}/{{look}}.json"


@dataclass(frozen=True)
class Look:
    """What a look found, as its JSON file has it."""

    seeds: int
    verdicts: dict[str, str]  # of every claim
    open: list[str]  # claims that are not decided
    arms: list[str]  # that the open claims need


def path(recipe: str, scale: str, look: int) -> Path:
    return Path(LOOK.format(recipe=recipe, scale=scale, look=look))


def read(file: Path) -> Look | None:
    """The look in a file; None where there is none that can be read."""
    try:
        return Look(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def on_disk(recipe: str, scale: str, root: Path = Path(".")) -> list[Look]:
    """The looks that were taken one after the other, up to the one that found nothing open."""
    taken: list[Look] = []
    while (look := following(taken)) and (found := read(root / path(recipe, scale, look))):
        taken.append(found)
    return taken


def following(taken: Sequence[Look]) -> int | None:
    """How many seeds the look after these has; None where all is decided or this was the last."""
    return None if len(taken) == len(LOOKS) or (taken and not taken[-1].arms) else LOOKS[len(taken)]


def seeds_of(arms: Iterable[str], taken: Sequence[Look]) -> dict[str, int]:
    """arm -> its number of seeds for the look after those taken; after the last, the number that it has."""
    seeds = dict.fromkeys(arms, LOOKS[0])
    for look, found in zip(LOOKS[1:], taken, strict=False):
        seeds |= {arm: look for arm in found.arms if arm in seeds}
    return seeds
