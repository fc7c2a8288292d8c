"""From numbers to one page.

    python -m analysis.report --recipe r1_zero --scale cpu --out results/r1_zero/cpu/report.html

Reads what analysis.analyse wrote into the folder named like the page, without `.html`, and writes one
self-contained HTML file: no request leaves it, and its policy lets no script run but its own.
"""

import base64
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from analysis import command_line, page
from analysis.numbers import means
from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page.drawing import svg_uri
from analysis.provenance import configuration
from analysis.results import bases
from analysis.sections import SECTIONS
from analysis.verdicts import claims_table, summary
from encore.errors import UserError
from encore.recipe.looks import LOOKS

TEMPLATES = Environment(
    loader=PackageLoader("analysis.page", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters |= {  # how templates write numbers and claims
    "number": means.number,
    "shown": means.shown,
    "p_value": means.p_value,
    "duration": means.duration,
    "power": means.power,
    "plural": summary.plural,
    "holds_when": claims_table.holds_when,
}


@dataclass(frozen=True)
class Recorded:
    """Where a page comes from that is made from a record, and what the record lacks."""

    name: str
    lacks: tuple[str, ...]
    written: str = ""  # when its claims were written
    bases: str = ""  # what its claims came to on other base models


def render(run: Run, folder: Path, report: str = "report", recorded: Recorded | None = None) -> str:
    """The page, from the folder that analyse wrote, or that a record has filled."""
    numbers = final(_table(folder / "table.csv"))
    pages = {section.NAME: section.page(run, numbers, folder) for section in SECTIONS}
    scripts = [text("tables.js"), text("viewer.js")]
    return TEMPLATES.get_template("report.html").render(
        run=run,
        head=summary.head(run, numbers),
        stopped=summary.stopped(run),
        one_base=bases.one_base(run),
        **pages,
        figures=drawn_figures(folder / "figures"),
        looks=LOOKS,
        commands=configuration.commands(run, report),
        recorded=recorded,
        style=Markup(text("style.css")),
        scripts=list(map(Markup, scripts)),
        script_hashes=hashes(scripts),
    )


def hashes(scripts: Sequence[str]) -> str:
    """The sources of a page's policy that let these scripts run, and no other."""
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def text(name: str) -> str:
    """A file among the templates that is no template."""
    return (Path(page.__file__).parent / "templates" / name).read_text(encoding="utf-8").removesuffix("\n")


def _table(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except FileNotFoundError:
        raise UserError(f"{path}: missing; run analysis.analyse first") from None


def drawn_figures(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Section's name -> its figures as analyse drew them, each with `src`: the SVG as a data URI."""
    by_section: dict[str, list[dict[str, str]]] = {section.NAME: [] for section in SECTIONS}
    for figure in json.loads((folder / "index.json").read_text()):
        src = svg_uri((folder / f"{figure['name']}.svg").read_text(encoding="utf-8"))
        alt_text = figure.get("alt_text", figure.get("alt"))  # `alt` in analyses before this name
        by_section[figure["section"]].append(figure | {"src": src, "alt_text": alt_text})
    return by_section


def write(run: Run, out: Path, report: str) -> None:
    """The page of the analysis in the folder of the same name."""
    out.write_text(render(run, out.with_suffix(""), report), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(command_line.main(__doc__, write, None))
