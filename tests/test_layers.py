"""What may import what: the commands, analysis, evals, encore, each downwards only, and torch late."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
# From the ground up; those of one line are equals, of which two may not import each other.
LAYERS = """
    encore.errors encore.own_watch encore.own_code
    encore.sandbox
    encore.worlds encore.runtime
    encore.recipe
    encore.objectives encore.data encore.models
    encore.rewards encore.labels encore.sampling encore.bandit
    encore.learning
    encore.validity
    encore.stages
    encore.forecast
    encore.workflow
    evals
    analysis.statistics
    analysis.numbers
    analysis.page
    analysis.arms analysis.coverage analysis.preferences analysis.training analysis.sensitivity
    analysis.verdicts analysis.provenance
    analysis.stage_ladder
    analysis.results analysis.methods
    analysis.command_line
    analysis.look analysis.report analysis.watch
    analysis.study
    analysis.gallery
    analysis.squares analysis.statements analysis.sizes
    analysis.guides analysis.papers
    analysis.publish
    analysis.join
    encore.judging encore.commands
    encore.__main__
"""
HEIGHT = {name: height for height, line in enumerate(LAYERS.split("\n")) for name in line.split()}
# Read before the environment of torch is set, or so often that its seconds of import count.
LIGHT = (
    "worlds/",
    "runtime/",
    "recipe/",
    "validity.py",
    "workflow/",
    "forecast/__main__.py",
    "forecast/preflight.py",
    "stages/__main__.py",
)
HEAVY = {"torch", "trl", "transformers", "datasets", "accelerate", "lm_eval", "vllm"}
TREES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for house in ("encore", "evals", "analysis")
    for path in sorted((ROOT / house).rglob("*.py"))
    if path.stat().st_size
}


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []


def package(module: str) -> str | None:
    return next((name for name in HEIGHT if module == name or module.startswith(f"{name}.")), None)


def arrows(file: str) -> set[tuple[str, str]]:
    """(importer, imported), each a package of LAYERS."""
    own = package(file.removesuffix(".py").replace("/", "."))
    assert own, f"{file} is in none of LAYERS"
    modules = {module for node in ast.walk(TREES[file]) for module in imported(node)}
    return {(own, other) for module in modules if (other := package(module))}


def test_imports_run_downwards():
    up = {(file, *arrow) for file in TREES for arrow in arrows(file)}
    assert not [one for one in up if HEIGHT[one[1]] < HEIGHT[one[2]]]


def test_no_two_equals_import_each_other():
    every = {arrow for file in TREES for arrow in arrows(file)}
    assert not [(a, b) for a, b in every if a != b and HEIGHT[a] == HEIGHT[b] and (b, a) in every]


def test_no_files_import_each_other_in_a_circle():
    """Nor by imports inside functions: the files that import only files already left are taken away."""
    files = {file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): file for file in TREES}

    def of(name: str) -> str | None:
        return files.get(name) or files.get(name.rpartition(".")[0])  # a file, or a name in a file

    left = {
        file: {of(name) for node in ast.walk(tree) for name in imported(node)} - {None, file}
        for file, tree in TREES.items()
    }
    while free := {file for file, others in left.items() if not others & left.keys()}:
        left = {file: others for file, others in left.items() if file not in free}
    assert not left


def test_imports_stand_at_the_top_but_where_torch_must_wait():
    for file, tree in TREES.items():
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        light = file.removeprefix("encore/").startswith(LIGHT)
        for node in ast.walk(tree):
            if node in tree.body:
                heavy = {module.split(".")[0] for module in imported(node)} & HEAVY
                assert not (light and heavy), f"{file}:{node.lineno}: {heavy} at the top"
            elif imported(node):
                reason = "#" in lines[node.lineno - 1] or lines[node.lineno - 2].lstrip().startswith("#")
                assert reason, f"{file}:{node.lineno}: an import inside a function says why it is there"
        assert "TYPE_CHECKING" not in "\n".join(lines), file


def test_the_snakefile_imports_recipe_and_workflow_alone():
    lines = (ROOT / "Snakefile").read_text(encoding="utf-8").splitlines()
    modules = [line.split()[1] for line in lines if line.startswith(("from ", "import "))]
    ours = [module for module in modules if package(module) or module in ("encore", "evals", "analysis")]
    assert {package(module) for module in ours} <= {"encore.recipe", "encore.workflow", "encore.errors"}


def test_a_function_that_its_file_alone_uses_has_an_underscore():
    """Classes and constants have none. A word anywhere else, or in the docstring, counts as a use."""
    listed = [
        *ROOT.glob("recipes/**/*.yaml"),
        *ROOT.glob("encore/**/*.yaml"),
        *ROOT.glob("analysis/page/templates/*"),
        ROOT / "Snakefile",
    ]
    listed += ROOT.glob("encore/**/*.smk")
    paths = [*(ROOT / file for file in TREES), *(ROOT / "tests").rglob("*.py"), *listed]
    words = {path: set(re.findall(r"\w+", path.read_text(encoding="utf-8"))) for path in paths}
    uses = Counter(word for found in words.values() for word in found)
    functions = {
        (file, node.name): uses[node.name] - 1
        for file, tree in TREES.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    for (file, name), others in functions.items():
        assert others or name[0] == "_" or name in (ast.get_docstring(TREES[file]) or ""), (file, name)
    reached = re.compile(r"\b(\w+)\.(_[a-z]\w*)\(")
    for path in paths:
        for module, name in reached.findall(path.read_text(encoding="utf-8")):
            assert not [file for file, own in functions if own == name and Path(file).stem == module], path
