"""What may import what: analysis -> evals -> recipes, and inside each of them downwards only."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# From the ground up; those of one line are equals, of which two may not import each other.
LAYERS = [
    "recipes.errors",
    "recipes.worlds recipes.runtime",
    "recipes.objectives recipes.data recipes.models",
    "recipes.rewards recipes.labels recipes.sampling",
    "recipes.spec recipes.trainers",
    "recipes.stages recipes.workflow",
    "evals",
    "analysis.statistics",
    "analysis.numbers",
    "analysis.page",
    "analysis.results analysis.preferences analysis.training",
    "analysis.verdicts analysis.provenance",
    "analysis.sections",
    "analysis.command_line",
    "analysis.analyse analysis.report analysis.publish",
]
HEIGHT = {package: height for height, line in enumerate(LAYERS) for package in line.split()}
HEAVY = {"torch", "trl", "transformers", "datasets", "accelerate", "lm_eval", "vllm"}
# These are read before the environment of torch is set, or so often that seconds count.
LIGHT = (
    "recipes/spec",
    "recipes/workflow",
    "recipes/worlds",
    "recipes/runtime",
    "recipes/objectives/loss_types",
)
LIGHT = (*LIGHT, "recipes/stages/__main__")
FILES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for house in ("recipes", "evals", "analysis")
    for path in sorted((ROOT / house).rglob("*.py"))
    if path.read_text(encoding="utf-8").strip()
}


def imported(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def package(module: str) -> str | None:
    return next((name for name in HEIGHT if module == name or module.startswith(f"{name}.")), None)


ARROWS = {
    (package(file.removesuffix(".py").replace("/", ".")), package(module), file)
    for file, tree in FILES.items()
    for node in ast.walk(tree)
    for module in imported(node)
    if package(module)
}


@pytest.mark.parametrize("file", FILES)
def test_every_file_has_a_layer_and_imports_downwards(file):
    assert package(file.removesuffix(".py").replace("/", ".")), "not in LAYERS"
    up = [(a, b) for a, b, of in ARROWS if of == file and HEIGHT[a] < HEIGHT[b]]
    assert not up


def test_equals_do_not_import_each_other_both_ways():
    among = {(a, b) for a, b, _ in ARROWS if a != b and HEIGHT[a] == HEIGHT[b]}
    assert not [(a, b) for a, b in among if (b, a) in among]


@pytest.mark.parametrize("file", FILES)
def test_imports_stand_at_the_top_but_where_torch_must_wait(file):
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    light = file.startswith(LIGHT)
    for node in ast.walk(FILES[file]):
        heavy = {module.split(".")[0] for module in imported(node)} & HEAVY
        if imported(node) and node in FILES[file].body:
            assert not (light and heavy), f"line {node.lineno}: {heavy} at the top"
        elif imported(node):
            reason = "#" in lines[node.lineno - 1] or lines[node.lineno - 2].strip().startswith("#")
            assert reason, f"line {node.lineno}: an import inside a function says why"
    assert "TYPE_CHECKING" not in "\n".join(lines)


def test_the_snakefile_imports_recipes_alone():
    text = (ROOT / "Snakefile").read_text(encoding="utf-8").partition("\nrule ")[0]
    lines = [line.split()[1] for line in text.splitlines() if line.startswith(("from ", "import "))]
    ours = {line for line in lines if line.split(".")[0] in ("recipes", "evals", "analysis")}
    assert {".".join(line.split(".")[:2]) for line in ours} <= {
        "recipes.spec",
        "recipes.workflow",
        "recipes.errors",
    }
