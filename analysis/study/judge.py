"""The judging of a study: `encore judge STUDY.yaml`. Programs with numbers use `encore.judging` instead.

The verdicts are the same as for equal numbers in a recipe: planned looks, one interval for each claim,
equivalence, families of primary and secondary claims (docs/verdicts.md). Facts that only a recipe knows are
missing: whether a run collapsed, gates, and the registration of claims.
"""

from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

from analysis.numbers.means import shown
from analysis.page import tables
from analysis.page.drawing import svg_uri
from analysis.page.figures import Drawn
from analysis.page.style import STYLE, save
from analysis.report import TEMPLATES, text
from analysis.study.document import Study, load
from analysis.study.frame import judged
from analysis.study.numbers import Collected, collect
from analysis.verdicts import claims, claims_table, forest
from analysis.verdicts.claims import JudgedClaims, Verdict
from encore.recipe.looks import LOOKS
from encore.runtime import files


@dataclass(frozen=True)
class Judged:
    """A study's verdicts at each look, the last look at the end, and the numbers behind them."""

    study: Study
    collected: Collected
    verdicts: JudgedClaims


def judge(study: Study, folder: Path) -> Judged:
    """Judge the claims of a study; its patterns are relative to `folder`. Raises UserError."""
    collected = collect(study, folder)
    return Judged(study, collected, judged(collected.table, study.claims.values()))


def lines(judged: Judged) -> list[str]:
    """Return the text for a terminal: a line for each claim, then the notes."""
    said = [_line(verdict) for verdict in judged.verdicts]
    seeds = len(judged.collected.seeds)
    if seeds < LOOKS[0]:
        said.append(f"{seeds} seeds: nothing is decided below {LOOKS[0]}")
    return [*said, *(f"note: {note}" for note in judged.collected.notes)]


def _line(verdict: Verdict) -> str:
    number = shown(verdict.difference if verdict.look else verdict.plain, verdict.metric)
    of = f"{verdict.n} seeds: {number} (asked: {claims_table.holds_when(verdict)})" if verdict.n else ""
    return f"{verdict.word:<15} {verdict.id}  {of or verdict.note}"


def write(judged: Judged, out: Path) -> None:
    """Write index.html, claims.csv and numbers.csv, and the forest plot, into the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    files.write(out / "claims.csv", judged.verdicts.frame().to_csv(index=False))
    files.write(out / "numbers.csv", judged.collected.table.drop(columns="step").to_csv(index=False))
    template = TEMPLATES.get_template("study.html")
    page = template.render(
        title=judged.study.title,
        style=text("style.css"),
        seeds=judged.collected.seeds,
        looks=LOOKS,
        files=judged.collected.files,
        figure=_forest(judged, out),
        verdicts=tables.cells(claims_table.verdicts_shown(judged.verdicts)),
        notes=judged.collected.notes,
        tally=claims.tally(judged.verdicts),
    )
    files.write(out / "index.html", page)


def _forest(judged: Judged, out: Path) -> Drawn | None:
    with mpl.rc_context(STYLE):
        figure = forest.draw(judged.verdicts)
        if figure is None:
            return None
        save(figure, out, "forest")
    src = svg_uri((out / "forest.svg").read_text(encoding="utf-8"))
    caption = "Each claim on a scale of its own: where it holds is shaded; dots are seeds."
    return Drawn("forest", "Claims, paired by seed", caption, forest.alt_text(judged.verdicts), src)


def command(path: Path, out: Path | None) -> list[str]:
    """Judge the study in a file, write its page, and return the text for a terminal. Raises UserError."""
    judged = judge(load(path), path.parent)
    folder = out or path.with_suffix("")
    write(judged, folder)
    return [*lines(judged), f"{folder / 'index.html'}"]
