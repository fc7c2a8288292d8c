"""Write the page of a run from the run's artefacts.

    python -m analysis.report --recipe r1_zero --scale cpu --out results/r1_zero/cpu/report.html

The page is one HTML file that requests nothing, and whose security policy lets only its own scripts run. The
folder with the page's name, without `.html`, gets the numbers for other uses: table.csv, the tables (CSV,
Markdown, LaTeX, HTML), figures/ (SVG, PNG, PDF) and summary.txt.
"""

import base64
import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from analysis import command_line, page
from analysis.arms import bases
from analysis.arms import view as arms_view
from analysis.numbers import means
from analysis.numbers.run import Run
from analysis.numbers.table import collect
from analysis.page import figures, tables
from analysis.page.figures import Drawn
from analysis.page.style import FORMATS
from analysis.page.view import View
from analysis.provenance import configuration
from analysis.results import Results, build, views
from analysis.training import series
from analysis.verdicts import claims_table, records, summary
from encore.errors import UserError
from encore.recipe.looks import LOOKS
from encore.runtime import suite

TEMPLATES = Environment(
    loader=PackageLoader("analysis.page", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters |= {  # the functions by which templates write numbers and claims as text
    "number": means.number,
    "shown": means.shown,
    "p_value": means.p_value,
    "duration": means.duration,
    "power": means.power,
    "plural": summary.plural,
    "holds_when": claims_table.holds_when,
    "level": claims_table.level,
}


@dataclass(frozen=True)
class Recorded:
    """The facts on a record that its page states; `lacks` names parts of the page that the record lacks."""

    name: str
    lacks: tuple[str, ...]
    written: str = ""  # the sentence on when its claims were written
    bases: str = ""  # sentences on its claims' results with other base models
    before: Mapping[str, str] = field(default_factory=dict)  # id of a claim -> its verdict by an earlier rule


def command(run: Run, out: Path, report: str) -> None:
    """Write the page of a run. Raises UserError if no job has a result, or if `out` does not end in .html."""
    if out.suffix != ".html":
        raise UserError(f"--out: expected a file that ends in .html, got {out}")
    if not any(path.exists() for path in map(run.sentinel, run.all_nodes())):
        raise UserError(
            f"no results of recipe {run.name} at scale {run.scale} in {run.root.resolve()}; {out} is left as "
            f"it is; run {suite.snakemake()} --cores {run.name} first"
        )
    write(build(run, collect(run)), out, report)


def write(results: Results, out: Path, report: str = "report") -> list[str]:
    """Write the page `out` and its folder of exported numbers; return the lines of summary.txt."""
    run, folder = results.run, out.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    _clear(folder)
    results.table.to_csv(folder / "table.csv", index=False)
    shown = views(results)
    for view in shown.values():
        for table in view.tables:
            tables.export(folder, table, f"{summary.title(run.recipe)}, {run.scale} scale")
    judged = results.verdicts
    lines = summary.lines(run, results.numbers, judged.last, judged.over_problems)
    if outcome := results.expected:
        lines.append(f"{outcome.heading}: {outcome.said}")
    (folder / "summary.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    drawn = draw(run, shown, folder / "figures")
    out.write_text(render(results, shown, drawn, report), encoding="utf-8")
    return lines


def _clear(folder: Path) -> None:
    """Remove the tables and figures of an earlier page, some of which the new page may not have."""
    for table in folder.glob("*.tex"):
        tables.remove(folder, table.stem)
    for figure in (folder / "figures").glob("*"):
        if figure.suffix.removeprefix(".") in FORMATS:
            figure.unlink()


def draw(
    run: Run,
    shown: Mapping[str, View],
    folder: Path,
    formats: Sequence[str] = FORMATS,
    without: Sequence[str] = (),
) -> dict[str, list[Drawn]]:
    """Draw the figures of all sections into a folder, except figures named in `without`.

    Return each section's name -> its drawn figures.
    """
    return {
        name: figures.draw_all(
            run, [plan for plan in view.figures if plan.name not in without], folder, formats
        )
        for name, view in shown.items()
    }


def render(
    results: Results,
    shown: Mapping[str, View],
    drawn: Mapping[str, Sequence[Drawn]],
    report: str = "report",
    recorded: Recorded | None = None,
) -> str:
    """Return the page as HTML, from its sections `shown` and their figures `drawn`."""
    # svg.js is a module where a server hands it out; a page has it in one block with the script that needs it
    curves = "{\n" + text("svg.js").replace("export const", "const") + "\n" + text("curves.js") + "\n}"
    run, scripts = results.run, [text("tables.js"), text("viewer.js"), text("folds.js"), curves]
    head = summary.head(run, results.numbers)
    pictures = _leading(drawn, head.measure)
    return TEMPLATES.get_template("report.html").render(
        run=run,
        head=head,
        headline=records.headline(run.document.found, run.scale) if recorded else "",
        stopped=summary.stopped(run),
        one_base=bases.one_base(run),
        **{name: view.page for name, view in shown.items()},
        pictures=pictures,
        figures={name: [figure for figure in some if figure not in pictures] for name, some in drawn.items()},
        looks=LOOKS,
        commands=configuration.commands(run, report),
        recorded=recorded,
        style=Markup(text("style.css")),
        scripts=list(map(Markup, scripts)),
        script_hashes=hashes(scripts),
    )


def _leading(drawn: Mapping[str, Sequence[Drawn]], measure: str) -> list[Drawn]:
    """Return the figures that a page begins with: how the arms learned, and their numbers before and after.

    `measure` is the metric that arms are compared by.
    """
    named = {figure.name: figure for of_section in drawn.values() for figure in of_section}
    figures = [named.get(series.main(named, measure)), named.get(arms_view.BEFORE_AFTER)]
    return [figure for figure in figures if figure]


def hashes(scripts: Sequence[str]) -> str:
    """Return the sources for the page's Content-Security-Policy that let only these scripts run."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def text(name: str) -> str:
    """Return the text of a style sheet or script in the folder of templates."""
    return (Path(page.__file__).parent / "templates" / name).read_text(encoding="utf-8").removesuffix("\n")


if __name__ == "__main__":
    sys.exit(command_line.main(__doc__, command, None))
