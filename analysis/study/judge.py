"""The judging of a study: `encore judge STUDY.yaml`. Programs with numbers use `encore.judging` instead.

The verdicts are those that a recipe with the same numbers would get: planned looks, one interval for each
claim, equivalence, families of primary and secondary claims (docs/verdicts.md). What only recipes have is
missing: collapses of runs, gates, and the registration of claims.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import matplotlib as mpl

from analysis.numbers.means import shown
from analysis.page import tables
from analysis.page.drawing import svg_uri
from analysis.page.figures import Drawn, Plan
from analysis.page.style import STYLE, save
from analysis.report import TEMPLATES, text
from analysis.study import across, references
from analysis.study.across import Shared
from analysis.study.document import Study, load
from analysis.study.frame import judged
from analysis.study.numbers import Collected, collect
from analysis.verdicts import claims, claims_table, forest
from analysis.verdicts.claims import JudgedClaims, Verdict
from analysis.verdicts.summary import plural
from encore.recipe.looks import LOOKS
from encore.runtime import files


@dataclass(frozen=True)
class Judged:
    """A study with the verdicts at the last look that its seeds have reached, and the numbers behind them."""

    study: Study
    collected: Collected
    verdicts: JudgedClaims


def judge(study: Study, folder: Path) -> Judged:
    """Judge the claims of a study. Raises UserError if its logs cannot be read.

    `folder` is the folder that the study's patterns of files start from.
    """
    collected = collect(study, folder)
    return Judged(study, collected, judged(collected.table, study.claims.values()))


def lines(judged: Judged) -> list[str]:
    """Return lines for the terminal: one for each claim, then the notes."""
    said = [_line(verdict) for verdict in judged.verdicts]
    seeds = len(judged.collected.seeds)
    if seeds < LOOKS[0]:
        said.append(f"{plural(seeds, 'seed')}: nothing is decided below {LOOKS[0]}")
    return [*said, *(f"note: {note}" for note in judged.collected.notes)]


def _line(verdict: Verdict) -> str:
    number = shown(verdict.difference if verdict.look else verdict.plain, verdict.metric)
    asked = claims_table.holds_when(verdict)
    of = f"{plural(verdict.n, 'seed')}: {number} (asked: {asked})" if verdict.n else ""
    return f"{verdict.word:<15} {verdict.id}  {of or verdict.note}"


def write(judged: Judged, out: Path) -> None:
    """Write index.html, its tables as CSV, and its figures into the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    files.write(out / "claims.csv", judged.verdicts.frame().to_csv(index=False))
    files.write(out / "numbers.csv", judged.collected.table.drop(columns="step").to_csv(index=False))
    pairs = across.shared(judged.study, judged.collected.table)
    if pairs:
        files.write(out / "improvement.csv", across.frame(pairs).to_csv(index=False))
    template = TEMPLATES.get_template("study.html")
    page = template.render(
        title=judged.study.title,
        style=text("style.css"),
        seeds=judged.collected.seeds,
        looks=LOOKS,
        files=judged.collected.files,
        figures=_figures(judged, pairs, out),
        improvement=tables.cells(across.rows_shown(pairs)) if pairs else None,
        verdicts=tables.cells(claims_table.verdicts_shown(judged.verdicts)),
        notes=judged.collected.notes,
        tally=claims.tally(judged.verdicts),
    )
    files.write(out / "index.html", page)


def _figures(judged: Judged, pairs: list[Shared], out: Path) -> Iterator[Drawn]:
    """Draw and yield the forest plot, the performance profiles, and each published curve with ours.

    Figures without data are left out.
    """
    plans = [
        Plan(
            "forest",
            "Claims, paired by seed",
            "Each claim on a scale of its own: where it holds is shaded; dots are seeds.",
            partial(forest.draw, judged.verdicts),
            forest.alt_text(judged.verdicts),
        ),
        Plan(
            "profiles",
            "Performance profiles",
            "The share of runs whose score is above each level, as a mean over the shared tasks. "
            "Bands: 95%, by a stratified bootstrap.",
            partial(across.draw, pairs),
            across.alt_text(pairs),
        ),
    ]
    for overlay in judged.collected.overlays:
        claim, distances = overlay.claim, overlay.distances
        farthest = f", at most {max(distances.values()):.3g} away" if distances else ""
        plans.append(
            Plan(
                f"curve-{claim.id}",
                claim.says,
                f"Published: {claim.source}. The band is {claim.test.margin:g} wide on each side.",
                partial(references.draw, overlay),
                f"The published curve and {len(distances)} seeds of ours{farthest}",
            )
        )
    with mpl.rc_context(STYLE):
        for plan in plans:
            if figure := plan.draw():
                save(figure, out, plan.name)
                src = svg_uri((out / f"{plan.name}.svg").read_text(encoding="utf-8"))
                yield Drawn(plan.name, plan.title, plan.caption, plan.alt_text, src)


def command(path: Path, out: Path | None) -> list[str]:
    """Judge the study in a file, write its page, and return lines for the terminal. Raises UserError.

    The page goes into the folder `out` (default: the file's name without its ending).
    """
    judged = judge(load(path), path.parent)
    folder = out or path.with_suffix("")
    write(judged, folder)
    return [*lines(judged), f"{folder / 'index.html'}"]
