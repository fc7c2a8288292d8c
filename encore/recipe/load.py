"""Reads and checks recipes: what each paper ran, as data, one YAML file a paper."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from encore.errors import Mistakes, UserError
from encore.recipe import strict_yaml
from encore.recipe.checks.layers import check_layers, check_names, check_shape
from encore.recipe.checks.resolved import check_resolved
from encore.recipe.graph import Graph
from encore.recipe.recipe import Recipe, alike, claim_rows, published_rows
from encore.recipe.schema import pattern

SCHEMA = 2
OLD = "write found for expected, and claims by their ids (docs/own.md)"
# No recipe can have the name of a rule in the Snakefile or of a folder in results/.
TARGETS = ("all", "everything", "benchmarks", "faults", "gallery", "clean_checkpoints", "preflight", "plan")
INNER = ("train", "evaluate", "look", "analyse", "report")  # rules of one job each
RESERVED = (*TARGETS, *INNER, "published")
# sections that name what evals have
REFERRING = ("claims", "gates", "frontiers", "coverage", "stage_ladder", "published")


def load(path: str | Path) -> Recipe:
    """One recipe, checked as far as one can be without the others. Raises UserError, one line."""
    path = Path(path)
    spec = _read(path)
    mistakes = Mistakes()
    for check in (check_shape, check_names, lambda whole: check_layers(alike(whole))):
        with mistakes.gather_further():
            check(spec)
    if mistakes.lines:
        raise _of_file(path, mistakes.lines)
    return _recipe(path.stem, spec)


def _recipe(name: str, spec: dict[str, Any]) -> Recipe:
    spec = alike(spec)
    rows = {"claims": claim_rows(spec), "published": published_rows(spec)}
    return Recipe(name, spec | {key: rows[key] for key in rows if key in spec})


def _of_file(path: Path, lines: Iterable[str]) -> UserError:
    return UserError("\n".join(f"{path}: {line}" for line in lines))


def own_file(config: Mapping[str, Any]) -> Path | None:
    """The file that `--config recipe=path/to/mine.yaml` names; None where a recipe is named, or none is."""
    path = Path(str(config.get("recipe", "")))
    return path if path.suffix in (".yaml", ".yml") or len(path.parts) > 1 else None


def load_all(folder: str | Path = "recipes", own: Path | None = None) -> dict[str, Recipe]:
    """Every recipe of a folder by name. Raises UserError for the mistakes of the first that has any."""
    recipes, broken = load_sound(folder, own)
    if broken:
        raise next(iter(broken.values()))
    return recipes


def load_sound(
    folder: str | Path = "recipes", own: Path | None = None
) -> tuple[dict[str, Recipe], dict[str, UserError]]:
    """A folder's recipes without a mistake, checked at every scale and arm; and the mistakes of the others.

    `own`: a recipe's file elsewhere, which is one of them. A recipe that builds on one with a mistake has a
    mistake too. Raises UserError where there is no recipe, or two have one name.
    """
    paths = {p.stem: p for p in sorted(Path(folder).glob("*.y*ml"))}
    if not paths:
        raise UserError(f"no recipe in {Path(folder).resolve()}; work in the folder of Encore's Snakefile")
    if own:
        there = paths.setdefault(own.stem, own)
        if own.exists() and not there.samefile(own):
            raise UserError(f"{own}: {there} has the same name; rename yours")
    recipes: dict[str, Recipe] = {}
    broken: dict[str, UserError] = {}
    misshapen: list[str] = []
    for name, path in paths.items():
        try:
            _check_name(path)
            misshapen.append(name)
            recipes[name] = load(path)
            misshapen.remove(name)
        except UserError as error:
            broken[name] = error
    while mistakes := _mistakes(recipes, broken, paths):
        broken |= mistakes
        recipes = {name: recipe for name, recipe in recipes.items() if name not in broken}
    for name in misshapen:
        broken[name] = _with_more(recipes, paths[name], broken[name])
    return recipes, broken


def _with_more(recipes: Mapping[str, Recipe], path: Path, error: UserError) -> UserError:
    """The mistakes of a file, and those that its layers come to, of parts that have none by themselves."""
    if any(re.search("expected a name of|seeds: expected at most", line) for line in error.lines):
        return error  # what bears such a name cannot be told of in a line, and so many seeds not gone through
    told = {_part(line.removeprefix(f"{path}: ")) for line in error.lines}
    try:
        spec = _read(path)
    except UserError:
        return error  # that the file cannot be read is the mistake
    try:
        recipe = _recipe(path.stem, spec)
        check_resolved(Graph({**recipes, path.stem: recipe}), recipe)
    except UserError as further:
        if told & {"evals", "arms", "scales", *REFERRING}:
            told |= {"evals", *REFERRING}
        more = [line for line in further.lines if _part(line) not in told]
        return UserError("\n".join([*error.lines, *_of_file(path, more).lines])) if more else error
    except Exception:  # it falls over what has been told
        return error
    return error


def _part(line: str) -> str:
    """The part of a recipe that a line is about: a stage, or a section."""
    stage = re.search(r"\bstages\.\w+", line.partition(": ")[0])
    return stage[0] if stage else re.split(r"[.\[:]", line)[0]


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
            lines = error.lines
            if below:
                lines = [f"it builds on recipe {below}, which has a mistake: {broken[below].lines[0]}"]
            mistakes[name] = _of_file(paths[name], lines)
    return mistakes


def _read(path: Path) -> dict[str, Any]:
    spec = strict_yaml.read(path)
    if not isinstance(spec, dict):
        raise UserError(f"{path}: a recipe is a mapping of keys; this file is {'not' if spec else 'empty'}")
    version = spec.get("schema")
    if type(version) is int and version > 0 and version != SCHEMA:
        raise UserError(
            f"{path}: schema: written for recipe schema {version}; this Encore reads {SCHEMA}; "
            + ("update it" if version > SCHEMA else OLD)
        )
    return spec
