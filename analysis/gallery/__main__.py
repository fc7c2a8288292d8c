"""The gallery: a first page for the reports of a scale, and one static site of all published records.

    python -m analysis.gallery --scale cpu
    python -m analysis.gallery --records [NAME ...]

The first command writes results/<scale>/index.html. The second writes results/published/index.html and a
page for each record (or for each named record), from the records alone: the same records give the same bytes.
The site needs no server. The second command also draws the figures of records that the manual shows.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from analysis import command_line
from analysis.gallery import index, pages
from analysis.numbers.recorded import folders, of_earlier_world
from analysis.verdicts.records import FIGURES, FOREST
from encore.errors import UserError, nearest
from encore.recipe.graph import Graph
from encore.recipe.load import load_all

RESULTS = Path("results")
RECORDS = RESULTS / "published"
PICTURES = {"iterative-cpu": "frontier"}  # record -> its figure that the manual shows
MANUAL = Path("docs/pictures")


def of_records(names: Sequence[str], folder: Path = RECORDS) -> None:
    """Write the pages of the records `names` (of all records if `names` is empty), and the first page.

    Raises UserError if a name is unknown.
    """
    graph = Graph(load_all())
    known = [record.name for record in folders(folder)]
    for name in names:
        if name not in known:
            raise UserError(f'--records: no record "{name}" in {folder}{nearest(name, known)}')
    for name in names or known:
        if of_earlier_world(folder / name, graph):
            # the page of such a record shows the recipe as it was then, and is kept
            continue
        with TemporaryDirectory() as scratch:
            formats = ("svg", "png") if name in (*FIGURES, *PICTURES) else ("svg",)
            text = pages.page(folder / name, graph, Path(scratch), formats)
            (folder / name / "index.html").write_text(text, encoding="utf-8")
            figures = Path(scratch)
            if name in FIGURES and (figures / FOREST).exists():
                shutil.copyfile(figures / FOREST, folder / name / FOREST)
            if name in PICTURES and folder == RECORDS:
                shutil.copyfile(figures / f"{PICTURES[name]}.png", MANUAL / f"{name}-{PICTURES[name]}.png")
        print(f"{folder / name / 'index.html'}", flush=True)
    (folder / "index.html").write_text(index.render(index.of_records(folder, graph)), encoding="utf-8")


def of_scale(scale: str, folder: Path = RESULTS) -> None:
    """Write the first page of the reports of a scale."""
    contents = index.of_scale(folder, scale, Graph(load_all()))
    (folder / scale).mkdir(parents=True, exist_ok=True)
    (folder / scale / "index.html").write_text(index.render(contents), encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--scale")
    choice.add_argument("--records", nargs="*")
    args = parser.parse_args(argv)
    if args.scale:
        return command_line.status(lambda: of_scale(args.scale))
    return command_line.status(lambda: of_records(args.records))


if __name__ == "__main__":
    sys.exit(main())
