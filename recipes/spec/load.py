"""Reads and checks recipes: what each paper ran, as data, one YAML file a paper."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from recipes.errors import UserError, first_line
from recipes.spec.checks.layers import check_layers, check_shape
from recipes.spec.checks.resolved import check_resolved
from recipes.spec.graph import Graph
from recipes.spec.recipe import GROUPED, Recipe, alike, ungrouped
from recipes.spec.schema import pattern

SCHEMA = 1
# No recipe can have the name of a rule in the Snakefile or of a folder in results/.
TARGETS = ("all", "everything", "benchmarks", "faults", "clean_checkpoints", "preflight", "plan")
INNER = ("train", "evaluate", "look", "analyse", "report")  # rules of one job each
RESERVED = (*TARGETS, *INNER, "published")
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class StrictLoader(Loader):  # type: ignore[misc, valid-type]
    """Refuses what YAML permits and no reader expects: a key twice or not text, an infinite number.

    A whole number as a key, such as a step, is text as it is written.
    """


def _mapping(loader: Any, node: Any) -> dict:
    mapping: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for key, value in node.value:
        name, line = loader.construct_object(key, deep=True), key.start_mark.line + 1
        if isinstance(name, int) and str(name) == key.value:
            name = key.value
        if not isinstance(name, str):
            raise UserError(f"line {line}: {key.value}: YAML reads this key as {name!r}, not text; quote it")
        if name in mapping:
            raise UserError(f"line {line}: {name}: written twice (first in line {lines[name]})")
        mapping[name], lines[name] = loader.construct_object(value, deep=True), line
    return mapping


def _float(loader: Any, node: Any) -> float:
    value = loader.construct_yaml_float(node)
    if not math.isfinite(value):
        raise UserError(f"line {node.start_mark.line + 1}: expected a finite number, got {node.value}")
    return value


StrictLoader.add_constructor("tag:yaml.org,2002:float", _float)
StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load(path: str | Path) -> Recipe:
    """One recipe, checked as far as one can be without the others. Raises UserError, one line."""
    path = Path(path)
    spec = _read(path)
    try:
        check_shape(spec)
        spec = alike(spec)
        check_layers(spec)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return Recipe(path.stem, spec | {key: ungrouped(spec, key) for key in GROUPED if key in spec})


def load_all(folder: str | Path = "recipes") -> dict[str, Recipe]:
    """Every recipe of a folder by name. Raises UserError for the first mistake in any of them."""
    recipes, broken = load_sound(folder)
    if broken:
        raise next(iter(broken.values()))
    return recipes


def load_sound(folder: str | Path = "recipes") -> tuple[dict[str, Recipe], dict[str, UserError]]:
    """A folder's recipes without a mistake, checked at every scale and arm; and the mistakes of the others.

    A recipe that builds on one with a mistake has a mistake too. Raises UserError where there is no recipe.
    """
    paths = {p.stem: p for p in sorted(Path(folder).glob("*.y*ml"))}
    if not paths:
        raise UserError(f"no recipe in {Path(folder).resolve()}; work in the folder of Encore's Snakefile")
    recipes: dict[str, Recipe] = {}
    broken: dict[str, UserError] = {}
    for name, path in paths.items():
        try:
            _check_name(path)
            recipes[name] = load(path)
        except UserError as error:
            broken[name] = error
    while mistakes := _mistakes(recipes, broken, paths):
        broken |= mistakes
        recipes = {name: recipe for name, recipe in recipes.items() if name not in broken}
    return recipes, broken


def _check_name(path: Path) -> None:
    if path.suffix != ".yaml":
        raise UserError(f"{path}: a recipe's file ends in .yaml; rename it")
    if not re.fullmatch(pattern("identifier"), path.stem):
        raise UserError(f'{path}: a recipe has a name of lower-case letters, digits and "_"; rename it')
    if path.stem in RESERVED:
        raise UserError(f"{path}: a reserved name; call the recipe something else")


def _mistakes(
    recipes: Mapping[str, Recipe], broken: Mapping[str, UserError], paths: Mapping[str, Path]
) -> dict[str, UserError]:
    """What is wrong with recipes that are well-formed by themselves: name -> the mistake."""
    graph, mistakes = Graph(recipes), {}
    for name, recipe in recipes.items():
        try:
            check_resolved(graph, recipe)
        except UserError as error:
            below = next((other for other in broken if f'unknown recipe "{other}"' in str(error)), None)
            reason = f"it builds on recipe {below}, which has a mistake: {broken[below]}" if below else error
            mistakes[name] = UserError(f"{paths[name]}: {reason}")
    return mistakes


def _read(path: Path) -> dict[str, Any]:
    try:
        spec = yaml.load(path.read_text(encoding="utf-8"), StrictLoader)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UserError(f"{path}: {place}not YAML: {error.problem}") from None
    except (yaml.YAMLError, UserError) as error:
        raise UserError(f"{path}: {first_line(error)}") from None
    if not isinstance(spec, dict):
        raise UserError(f"{path}: a recipe is a mapping of keys; this file is {'not' if spec else 'empty'}")
    version = spec.get("schema")
    if isinstance(version, int) and version > SCHEMA:
        raise UserError(
            f"{path}: schema: written for recipe schema {version}; this Encore reads {SCHEMA}; update it"
        )
    return spec
