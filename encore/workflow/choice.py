"""The checked choices of a run: `--config recipe=… scale=… seeds=… arms=… claims=… part=… track=…`."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from encore.errors import UserError, known, nearest
from encore.forecast.hardware import Assumptions
from encore.recipe.base import Seed
from encore.recipe.document import CHOSEN, Seeds
from encore.recipe.load import own_file
from encore.recipe.looks import AUTO
from encore.recipe.mistakes import lines
from encore.recipe.recipe import Recipe
from encore.runtime import tracking

CHOSEN_KEYS = ("arms", "claims")
KEYS = ("scale", "seeds", "track", "part", *CHOSEN_KEYS)  # keys of --config that every target takes
OF_ONE = {  # target -> keys that it alone takes; but every target takes a `recipe` that is a file
    "all": ("recipe",),
    "preflight": ("recipe", "arm"),
    "plan": ("recipe", "gpus", *Assumptions.__dataclass_fields__),
}


@dataclass(frozen=True)
class Choice:
    """The choices that the user makes with `--config`; some of them apply to one target alone."""

    scale: str
    seeds: int | tuple[int, ...] | None  # number of seeds, or a list of seeds; None: the recipe's own number
    auto: bool = False  # whether looks decide the number of seeds, if the recipe has claims
    track: str = tracking.NONE  # the tracker of each training
    recipe: str | None = None
    arm: str | None = None  # the arm; None: the recipe's first
    asked: tuple[tuple[str, Any], ...] = ()  # all keys and values of --config, before checks
    arms: tuple[str, ...] = ()  # the chosen arms; (): all arms, unless claims are chosen
    claims: tuple[str, ...] = ()  # the chosen claims; the arms that they compare are run
    file: Path | None = None  # the file of the chosen recipe if it is not in recipes/
    part: tuple[int, int] = (1, 1)  # (k, n): part k of n of the grid; with several parts no page is made

    @property
    def report(self) -> str:
        """The name of the report that is made of a recipe.

        Chosen arms, claims or seeds have a report of their own, which leaves the whole report unchanged.
        """
        return CHOSEN if self.arms or self.claims or isinstance(self.seeds, tuple) else "report"

    def named(self, recipe: str) -> str:
        """Return the recipe as our commands take it: its name, or its file if it is not in recipes/."""
        return str(self.file) if self.file and self.file.stem == recipe else recipe

    @property
    def plan(self) -> str:
        """The arguments of the command `plan`: all keys and values of --config, quoted for a shell."""
        return shlex.join(f"{key}={value}" for key, value in self.asked)

    @property
    def preflight(self) -> str:
        """The options of the command `preflight`, quoted for a shell."""
        chosen = {name: getattr(self, name) for name in ("recipe", "scale", "arm", "seeds")}
        chosen["recipe"] = self.named(self.recipe or "")
        return " ".join(f"--{name} {shlex.quote(str(value))}" for name, value in chosen.items() if value)


def choice(recipes: Mapping[str, Recipe], config: Mapping[str, Any]) -> Choice:
    """Return the choices in `config`, the values of --config. Raises UserError for a bad key or value."""
    keys = sorted({*KEYS, *chain.from_iterable(OF_ONE.values())})
    for key in config:
        if key not in keys:
            raise UserError(f"--config {key}: unknown key{nearest(key, keys)}")
    scale, track = str(config.get("scale", "cpu")), str(config.get("track", tracking.NONE))
    if track != tracking.NONE:
        tracking.require(track)
    scales = sorted({scale for recipe in recipes.values() for scale in recipe.scales})
    if recipes and scale not in scales:
        raise UserError(f'--config scale: unknown scale "{scale}"{nearest(scale, scales)}')
    file, arm = own_file(config), config.get("arm")
    recipe = file.stem if file else config.get("recipe")
    made = Choice(
        scale,
        _seeds(config.get("seeds")),
        config.get("seeds") == AUTO,
        track,
        None if recipe is None else str(recipe),
        None if arm is None else str(arm),
        tuple(config.items()),
        tuple(_listed(config.get("arms", ()))),
        tuple(_listed(config.get("claims", ()))),
        file,
        _part(config.get("part", "1/1")),
    )
    if made.auto and made.part[1] > 1:
        why = "looks at the whole grid; set a number of seeds"
        raise UserError(f"--config part: {config['part']}, but seeds={AUTO} {why}")
    if made.auto and made.report == CHOSEN:
        raise UserError("--config seeds: auto judges every claim; it cannot be combined with arms or claims")
    return made


def _listed(value: Any) -> list[str]:
    """Return the words of the text `a,b`, or of a list."""
    words = value if isinstance(value, list | tuple) else str(value).split(",")
    return [str(word).strip() for word in words if str(word).strip()]


def _seeds(value: Any) -> int | tuple[int, ...] | None:
    if value in (None, AUTO):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        _check_seeds(value, Seeds)
        return value
    words = _listed(value)
    if ("," in str(value) or isinstance(value, list | tuple)) and words and all(map(str.isdecimal, words)):
        seeds = tuple(sorted({int(word) for word in words}))
        _check_seeds(seeds[-1], Seed)
        return seeds
    raise UserError(
        f"--config seeds: expected a number of seeds (8), a list (0,2 or, for one, 2,) or {AUTO}, got {value}"
    )


def _check_seeds(value: int, kind: Any) -> None:
    """Raise UserError unless `value` is a valid number of seeds or a valid seed, whichever `kind` is."""
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise UserError(lines(error, value, ["--config seeds"])[0]) from None


def _part(asked: Any) -> tuple[int, int]:
    """Return (2, 4) from the text `2/4`."""
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", str(asked))
    number, of = map(int, match.groups()) if match else (1, 0)
    if number > of:
        raise UserError(f"--config part: expected a part such as 2/4, the second of four, got {asked}")
    return number, of


def selection(recipe: Recipe, scale: str, report: str, chosen: Choice) -> tuple[list[str], list[int]]:
    """Return the arms and the seeds of a recipe's report.

    Raises UserError for an unknown arm or claim, and for a seed on which the recipe's dials were chosen.
    """
    arms = _chosen_arms(recipe, scale, chosen.arms, chosen.claims) if report == CHOSEN else ()
    if isinstance(chosen.seeds, tuple) and (dials := sorted(recipe.dial_seeds & {*chosen.seeds})):
        why = f"the dials of {recipe.name} were chosen on seed {dials[0]}, so nothing is judged on it"
        raise UserError(f"--config seeds: {why}; take others, from {recipe.first_seed} on")
    return recipe.selection(scale, report, chosen.seeds, arms)


def _chosen_arms(recipe: Recipe, scale: str, arms: Sequence[str], claims: Sequence[str]) -> tuple[str, ...]:
    """Return the named `arms`, and the arms that the named `claims` compare, in the recipe's order."""
    known(f"--config arms: {recipe.name} at scale {scale}", arms, recipe.arms(scale), "arm")
    stated = {claim.id: claim for claim in recipe.claims(scale)}
    known(f"--config claims: {recipe.name} at scale {scale}", claims, [*stated], "claim")
    compared = {arm for name in claims for arm in recipe.document.arms_of(stated[name])}
    return tuple(arm for arm in recipe.arms(scale) if arm in compared or arm in arms)
