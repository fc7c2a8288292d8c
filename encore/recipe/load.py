"""The reading and checking of recipes: what each paper ran, as data, in YAML files."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from encore.errors import Mistakes, UserError, nearest
from encore.recipe import document, presets
from encore.recipe.base import IDENTIFIER
from encore.recipe.checks import claims, dials, stage_ladder
from encore.recipe.checks.evals import check_decontaminate, check_evals, check_marks
from encore.recipe.checks.needs import check_cycle, check_inputs, check_needs
from encore.recipe.document import Document, ScaleFile
from encore.recipe.files import PRESETS, Files, of_file, read_files
from encore.recipe.files import recipes as recipes_in
from encore.recipe.graph import Graph, Node
from encore.recipe.layers import Layers, check_layers, check_nulls
from encore.recipe.likeness import alike
from encore.recipe.presets import Presets
from encore.recipe.recipe import Recipe
from encore.recipe.strict_yaml import Content
from encore.runtime import suite

# names of rules in the Snakefile or of folders in results/, which no recipe can have
TARGETS = ("all", "everything", "benchmarks", "faults", "gallery", "clean_checkpoints", "preflight", "plan")
INNER = ("train", "evaluate", "look", "report")  # rules that make one job each
RESERVED = (*TARGETS, *INNER, "published")
# sections that name parts of evals
REFERRING = ("claims", "gates", "frontiers", "coverage", "stage_ladder", "published")


def load(path: str | Path, shared: Presets | None = None) -> Recipe:
    """Return the recipe in a file or folder, after all checks that need no other recipe.

    `shared` are the presets that it may use; by default all in recipes/presets. Raises UserError with a
    line for each mistake, which names the file.
    """
    files = read_files(Path(path), presets.read_presets() if shared is None else shared)
    mistakes = Mistakes()
    for scale, content in ("", files.main), *files.further.items():
        with mistakes.gather_further(), of_file(files.file(scale)):
            document.read_content(content, ScaleFile if scale else Document)
    spec: Content = {}
    with mistakes.gather_further(), files.told():
        spec |= files.joined()
    for check in (_check_names, lambda whole: check_layers(alike(whole))):
        with mistakes.gather_further(), files.told():
            check(spec)
    mistakes.tell()
    return _recipe(files)


def _check_names(content: Content) -> None:
    """Raise UserError with the mistakes in names, claims and dials, and with nulls that delete nothing."""
    mistakes = Mistakes()
    with mistakes.gather():
        check_nulls(content)
    if rest := document.sound(alike(content)):
        for place, told in rest.mistakes():
            mistakes.note(f"{place}: {told}")
    mistakes.tell()


def _recipe(files: Files) -> Recipe:
    return Recipe(files.path.stem, Layers(alike(files.joined())), files)


def own_file(config: Mapping[str, Any]) -> Path | None:
    """Return the file that `--config recipe=path/to/mine.yaml` names.

    The result is None if the option names a recipe, or nothing.
    """
    path = Path(str(config.get("recipe", "")))
    return path if path.suffix in (".yaml", ".yml") or len(path.parts) > 1 else None


def load_named(name: str, scale: str, root: Path = Path(".")) -> tuple[Graph, Recipe, Path | None]:
    """Return the graph of all recipes, the recipe that a command line names, and its file if a user wrote it.

    `name` is the name of a recipe in recipes/, or the path of a user's file. Raises UserError if the recipe
    has a mistake, or if there is no such recipe or scale.
    """
    user_file = own_file({"recipe": name})
    recipes, broken = load_sound(suite.folder(root) / "recipes", user_file)
    name = user_file.stem if user_file else name
    if name in broken:
        raise broken[name]
    if name not in recipes:
        raise UserError(f'unknown recipe "{name}"{nearest(name, [*recipes])}')
    recipe = recipes[name]
    if scale not in recipe.scales:
        known = nearest(scale, [*recipe.scales])
        raise UserError(f'{recipe.files.file()}: unknown scale "{scale}"{known}')
    return Graph(recipes), recipe, user_file


def load_all(folder: str | Path | None = None, user_file: Path | None = None) -> dict[str, Recipe]:
    """Return every recipe of a folder by name; the folder is by default the one that load_sound() takes.

    Raises UserError for the mistakes of the first recipe that has any.
    """
    recipes, broken = load_sound(folder, user_file)
    if broken:
        raise next(iter(broken.values()))
    return recipes


def load_sound(
    folder: str | Path | None = None, user_file: Path | None = None
) -> tuple[dict[str, Recipe], dict[str, UserError]]:
    """Return the recipes of a folder that have no mistakes, and the mistakes of the others, both by name.

    `folder` is by default recipes/ of the working folder if that is a clone, else of the installed package.
    `user_file` is the file of a further recipe. A recipe that builds on one with a mistake has a mistake too.
    Raises UserError if there is no recipe, or if two have the same name.
    """
    folder = Path(folder) if folder else suite.folder() / "recipes"
    paths, shared = recipes_in(folder), presets.read_presets(folder / PRESETS)
    if not paths:
        raise UserError(f"no recipe in {folder.resolve()}; expected those of Encore, in a clone or installed")
    if user_file:
        known = paths.setdefault(user_file.stem, user_file)
        if user_file.exists() and not known.samefile(user_file):
            raise UserError(f"{user_file}: {known} has the same name; rename yours")
    recipes: dict[str, Recipe] = {}
    broken: dict[str, UserError] = {}
    misshapen: list[str] = []
    for name, path in paths.items():
        try:
            _check_name(path)
            misshapen.append(name)
            recipes[name] = load(path, shared)
            misshapen.remove(name)
        except UserError as error:
            broken[name] = error
    while mistakes := _mistakes(recipes, broken):
        broken |= mistakes
        recipes = {name: recipe for name, recipe in recipes.items() if name not in broken}
    for name in misshapen:
        broken[name] = _with_more(recipes, paths[name], shared, broken[name])
    return recipes, broken


def _with_more(recipes: Mapping[str, Recipe], path: Path, shared: Presets, error: UserError) -> UserError:
    """Return `error` with the mistakes added that are seen only once the layers of the recipe are merged."""
    if any(re.search("expected a name of|seeds: expected at most", line) for line in error.lines):
        return error  # a line cannot show such a name, and there are too many seeds to try them all
    told = {_part(line) for line in error.lines}
    try:
        files = read_files(path, shared)
    except UserError:
        return error  # the mistake is that a file cannot be read, so there are no layers to merge
    try:
        recipe = _recipe(files)
        with files.told():
            check_resolved(Graph({**recipes, recipe.name: recipe}), recipe)
    except UserError as further:
        if told & {"evals", "arms", "scales", *REFERRING}:
            told |= {"evals", *REFERRING}
        more = [line for line in further.lines if _part(line) not in told]
        return UserError("\n".join([*error.lines, *more]))
    except Exception:  # the check fails because of mistakes that are reported already
        return error
    return error


def check_resolved(graph: Graph, recipe: Recipe) -> None:
    """Check a recipe with the recipes that it builds on.

    Checked are the stages and evaluations of every arm at every scale; then what claims and published numbers
    compare, the gates that claims need, the frontiers that both use, the steps of the ladder of stages, and
    the sweeps that dials come from.
    """
    mistakes = Mistakes()
    for scale in recipe.scales:
        for arm in recipe.arms(scale):
            _check_arm(graph, recipe, scale, arm, mistakes)
        if not recipe.selection(scale, "quickstart", None)[0]:
            mistakes.note(f"quickstart.arms: none of them exists at scale {scale}")
    if not any(line.startswith("evals") for line in mistakes.lines):  # everything below names evaluations
        with mistakes.gather_further():
            claims.check_claims(recipe)
    if not mistakes.lines:  # this check follows the stages that each step is built on
        with mistakes.gather():
            stage_ladder.check_stage_ladder(graph, recipe)
    with mistakes.gather():
        dials.check_dials(graph, recipe)
    mistakes.tell()


def _check_arm(graph: Graph, recipe: Recipe, scale: str, arm: str, mistakes: Mistakes) -> None:
    where = f" (scale {scale}, arm {arm})"
    for name in recipe.layers.without_kind(scale, arm):
        return mistakes.note(f"stages.{name}.run: missing{where}")
    nodes = [Node(recipe.name, scale, arm, 0, name, "stage") for name in recipe.stages(scale, arm)]
    further = Mistakes()
    with further.gather():
        evals = recipe.evals(scale, arm)
    for node in nodes:
        path = f"stages.{node.name}"
        with further.gather():
            check_needs(graph, node, where)
        with further.gather():
            graph.stage(node).check_rules(path, where, whole=True)
        if further.lines:
            continue  # the checks below read parts that the checks above have found to exist
        with further.gather(), under(path, where):
            check_inputs(graph, node)
            check_marks(node.name, graph.stage(node), evals)
        with further.gather(), under(path, where):
            check_decontaminate(graph.stage(node), evals)
    if not further.lines:
        with further.gather():
            check_evals(graph, recipe, scale, arm, where)
    if not further.lines:
        for node in nodes:
            with further.gather():
                check_cycle(graph, node, [])
    for line in further.lines:
        mistakes.note(line)


@contextmanager
def under(path: str, where: str) -> Iterator[None]:
    """Make each line of a UserError from the block begin with `path` and end with `where`."""
    try:
        yield
    except UserError as error:
        raise UserError("\n".join(f"{path}.{line}{where}" for line in error.lines)) from None


def _part(line: str) -> str:
    """Return the part of a recipe that an error line is about: `stages.NAME`, or a top-level key."""
    line = line.partition(".yaml: ")[2]
    stage = re.search(r"\bstages\.\w+", line.partition(": ")[0])
    return stage[0] if stage else re.split(r"[.\[:]", line)[0]


def _check_name(path: Path) -> None:
    if path.suffix != ".yaml" and not path.is_dir():
        raise UserError(f"{path}: a recipe's file ends in .yaml; rename it")
    if not re.fullmatch(IDENTIFIER, path.stem):
        raise UserError(f'{path}: a recipe has a name of lower-case letters, digits and "_"; rename it')
    if path.stem in RESERVED:
        raise UserError(f"{path}: a reserved name; call the recipe something else")


def _mistakes(recipes: Mapping[str, Recipe], broken: Mapping[str, UserError]) -> dict[str, UserError]:
    """Return name -> the mistakes of a recipe that are seen only beside the other recipes."""
    graph, mistakes = Graph(recipes), {}
    for name, recipe in recipes.items():
        try:
            with recipe.files.told():
                check_resolved(graph, recipe)
        except UserError as error:
            mistakes[name] = error
            below = next((other for other in broken if f'unknown recipe "{other}"' in str(error)), None)
            if below:
                wrong = f"it builds on recipe {below}, which has a mistake: {broken[below].lines[0]}"
                mistakes[name] = UserError(f"{recipe.files.file()}: {wrong}")
    return mistakes
