"""The looks of a group-sequential run. At a look, claims are judged on the seeds so far; decided arms stop.

The module is here because both the workflow, which plans the seeds, and the analysis, which judges them, need
it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

LOOKS = (8, 16, 32)  # numbers of seeds, counted from the recipe's first
AUTO = "auto"  # used instead of a number of seeds, if looks decide the number
FOLDER = "looks"  # folder beside the arms' folders, so no arm may have the name
LOOK = f"results/{{recipe}}/{{scale}}/{FOLDER}/{{look}}.json"


@dataclass(frozen=True)
class Look:
    """The result of a look, as its JSON file has it."""

    seeds: int
    verdicts: dict[str, str]  # verdict of every claim
    open: list[str]  # claims that are not decided
    arms: list[str]  # arms that the open claims need


def path(recipe: str, scale: str, look: int) -> Path:
    return Path(LOOK.format(recipe=recipe, scale=scale, look=look))


def read_look(file: Path) -> Look | None:
    """Return the look in a file; None if the file is missing or cannot be read."""
    try:
        return Look(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def on_disk(recipe: str, scale: str, root: Path = Path(".")) -> list[Look]:
    """Return the looks taken so far, in order, up to the first look that left no claim open."""
    taken: list[Look] = []
    while (look := following(taken)) and (next_look := read_look(root / path(recipe, scale, look))):
        taken.append(next_look)
    return taken


def following(taken: Sequence[Look]) -> int | None:
    """Return the number of seeds of the next look; None if all is decided or the last look was taken."""
    return None if len(taken) == len(LOOKS) or (taken and not taken[-1].arms) else LOOKS[len(taken)]


def seeds_of(arms: Iterable[str], taken: Sequence[Look]) -> dict[str, int]:
    """Return arm -> its number of seeds for the next look; after the last look, its final number."""
    seeds = dict.fromkeys(arms, LOOKS[0])
    for look, result in zip(LOOKS[1:], taken, strict=False):
        seeds |= {arm: look for arm in result.arms if arm in seeds}
    return seeds
