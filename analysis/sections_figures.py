"""The report's figures: which there are, and where. Every arm keeps one colour in all of them."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import matplotlib as mpl
import pandas as pd

from analysis.numbers import reach, tasks
from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page import rows
from analysis.page.figures import Drawn, Plan
from analysis.page.style import STYLE, colours, save
from analysis.preferences import section as preferences
from analysis.preferences import section_figures
from analysis.results import before_after, effects
from analysis.training import effort, learning_curves, ratio_histograms
from analysis.verdicts import forest
from analysis.verdicts.claims import Verdict


def plans(
    run: Run, table: pd.DataFrame, verdicts: Sequence[Verdict], found: preferences.Found
) -> Iterator[Plan]:
    """Every figure, in the order of the report."""
    palette = colours(run.recipe.arms(run.scale))
    task, numbers, training = tasks.headline(run), final(table), learning_curves.of_rl(table)
    measure = tasks.measure(numbers, task)
    word = tasks.MEASURES[measure]
    level = f"{word} on {task}"

    def in_rows(
        section: str, name: str, title: str, caption: str, found: list[rows.Row], label: str, **how
    ) -> Plan:
        return Plan(section, name, title, caption, lambda: rows.draw(found, label, **how) if found else None,
                    "; ".join(row.said for row in found))  # fmt: skip

    yield Plan(
        "verdicts",
        "forest",
        "Differences, paired by seed",
        "Diamond: mean; bar: 95% interval; dots: seeds; green ground: where the claim holds.",
        partial(forest.draw, verdicts),
        forest.said(verdicts),
    )
    yield in_rows(
        "results",
        "ladder",
        "The ladder: each arm adds to the one above",
        f"Final {word}. The number is the step from the arm above, paired by seed, with its interval.",
        effects.ladder(run, numbers, task, palette, measure),
        level,
        joined=True,
    )
    full = run.spec.get("leave_one_out", {}).get("full", "")
    yield in_rows(
        "results",
        "leave-one-out",
        f"What {full} loses without each part",
        f"{word.capitalize()} less that of {full}, paired by seed: left of the line the part is missed.",
        effects.leave_one_out(run, numbers, task, palette, measure),
        f"{level}, less that of {full}",
        zero=True,
    )
    yield in_rows(
        "results",
        "arms-forest",
        f"Final {word} against {run.arms[0]}",
        f"{word.capitalize()} less that of {run.arms[0]}, paired by seed, the best first: "
        "an interval that holds zero tells no difference.",
        effects.against_base(run, numbers, task, palette, measure),
        f"{level}, less that of {run.arms[0]}",
        zero=True,
    )
    yield in_rows(
        "results",
        "levels",
        "Interquartile mean over levels of difficulty",
        "Mean of the middle half of all seeds and levels, with its interval, the best first: "
        "no single level or seed decides. Dots: seeds alone.",
        effects.by_level(run, numbers, task, palette),
        f"IQM of accuracy on {task}",
    )
    yield Plan(
        "results",
        "pass-at-k",
        f"pass@k on {task}",
        "Chance that one of k samples is right. Curves that cross (dotted, if intervals are apart on both "
        "sides): RL sharpened what the base could do.",
        partial(before_after.pass_at_k, run, numbers, task, palette),
    )
    yield Plan(
        "results",
        "accuracy-by-difficulty",
        f"Accuracy by difficulty on {task}",
        "Where the gain comes from: on easy problems, or on problems that the base could not do.",
        partial(before_after.by_difficulty, run, numbers, task, "accuracy", palette),
    )
    yield Plan(
        "results",
        "length-by-difficulty",
        f"Response length by difficulty on {task}, tokens",
        "Longer answers to harder problems are reasoning; the same growth everywhere is padding.",
        partial(before_after.by_difficulty, run, numbers, task, "length", palette),
    )
    for about in section_figures.plans(run, numbers, found, palette):
        yield Plan("preferences", *about)
    for series in learning_curves.TRAINING:
        caption = series.caption
        if series.name == "kl":
            caption += learning_curves.distance(run) + learning_curves.reference(run)
        draw = partial(learning_curves.draw, training, series, palette)
        yield Plan("training", series.name, series.title, caption, draw)
    for series in learning_curves.PREFERENCES:
        logged = learning_curves.of_rl(table, series.metrics[0][0])
        draw = partial(learning_curves.draw, logged, series, palette)
        yield Plan("training", series.name, series.title, series.caption, draw)
    yield Plan(
        "training",
        "entropy-accuracy",
        "Entropy against accuracy",
        "A line an arm, from ring to disc, dots at equal times: at the same accuracy the higher line has "
        "more left to explore.",
        partial(effort.entropy_accuracy, training, palette),
    )
    yield Plan(
        "training",
        "accuracy-by-effort",
        "Accuracy by updates and by samples",
        "An arm that is ahead on the left only pays for its updates in samples. Trailing mean of 5 rollouts.",
        partial(effort.accuracy_by_effort, run, training, palette),
    )
    for goal in reach.levels(run.spec.get("claims", [])):
        for unit, label in effort.UNITS.items():
            yield in_rows(
                "training",
                f"{unit}-to-accuracy-{goal}",
                f"{unit.capitalize()} to a training accuracy of {goal}",
                "The cheapest arm first. Dots: seeds; diamond: their mean. "
                "A seed that never got there counts with all it spent.",
                effort.effort_rows(numbers, unit, goal, palette),
                label,
            )
    yield Plan(
        "training",
        "ratios",
        "Importance ratios",
        "Share of the log ratios of tokens (solid) and sequences (dashed) in each bin, four to a decade, "
        "in the last fifth of training; beyond the dotted lines the clip acts.",
        partial(ratio_histograms.draw, run, palette),
    )


def draw_all(
    run: Run, table: pd.DataFrame, verdicts: Sequence[Verdict], folder: Path, found: preferences.Found
) -> list[Drawn]:
    """Every figure that there is data for, into `folder`; in the order of the report."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    with mpl.rc_context(STYLE):
        for plan in plans(run, table, verdicts, found):
            figure = plan.draw()
            if figure is not None:
                save(figure, folder, plan.name)
                said = plan.alt or f"Arms: {', '.join(run.arms)}"
                alt = f"{plan.title}. {said}. The numbers are in table.csv."
                drawn.append(Drawn(plan.section, plan.name, plan.title, plan.caption, alt))
    return drawn
