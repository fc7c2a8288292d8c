"""The command `python -m encore.workflow.clean`, which removes checkpoints that no recipe uses any more."""

import argparse
import shutil
import sys
from pathlib import Path

from encore.errors import UserError
from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_all
from encore.runtime import suite

NOTE = "recipe.path"  # file in the folder of a recipe's checkpoints with the recipe's path


def unused(graph: Graph, folder: Path) -> list[Path]:
    """Return the folders recipe/scale/arm/seedN/stage/lineage whose stage or lineage no recipe has."""
    folders = (path for path in sorted(folder.glob("*/*/*/seed*/*/*")) if path.is_dir())
    return [path for path in folders if not _used(graph, path)]


def told(graph: Graph, folder: Path) -> str | None:
    """Return a line about what `clean_checkpoints` would remove; None if it would remove nothing.

    Checkpoints of a recipe that is outside of recipes/ and not in `graph` do not count.
    """
    elsewhere = {path.parent.name for path in folder.glob(f"*/{NOTE}")} - graph.recipes.keys()
    paths = [path for path in unused(graph, folder) if path.relative_to(folder).parts[0] not in elsewhere]
    files = (file for path in paths for file in path.rglob("*"))
    size = sum(file.stat().st_size for file in files if file.is_file()) / 1e9
    summary = f"{len(paths)} folder{'s' if paths[1:] else ''} in {folder}, {size:.2g} GB"
    command = f"{suite.snakemake()} --cores clean_checkpoints"
    return f"no recipe leads to {summary}; {command} removes them" if paths else None


def _used(graph: Graph, path: Path) -> bool:
    name, scale, arm, seed, stage, lineage = path.parts[-6:]
    node = Node(name, scale, arm, int(seed.removeprefix("seed")), stage, "stage")
    return graph.knows(node) and graph.lineage(node).startswith(lineage)


def remember(file: Path) -> None:
    """Note the file of a recipe outside of recipes/, so that its checkpoints count as used."""
    note = Path("checkpoints") / file.stem / NOTE
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(f"{file.resolve()}\n", encoding="utf-8")


def _remembered(folder: Path) -> list[Path]:
    paths = [Path(note.read_text(encoding="utf-8").strip()) for note in folder.glob(f"*/{NOTE}")]
    return [path for path in paths if path.is_file()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default="checkpoints")
    folder = parser.parse_args().folder
    try:
        recipes = load_all()
        for file in _remembered(folder):
            recipes |= load_all(user_file=file)
        paths = unused(Graph(recipes), folder)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for path in paths:
        shutil.rmtree(path)
        print(f"removed {path}", flush=True)
    print(f"{len(paths)} checkpoint folders removed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
