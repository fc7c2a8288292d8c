"""The README of the published records, with a row for each record, made from recipes and records alone."""

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from analysis.arms import bases
from analysis.numbers.recorded import KEY, NUMBERS, RUNS, as_run, current, folders, of_earlier_world, title
from analysis.numbers.run import Run
from analysis.page import markdown
from analysis.verdicts import claims, suite, summary, whose, written
from encore.recipe.files import REGISTERED
from encore.recipe.graph import Graph
from encore.recipe.looks import LOOKS

TITLE = "# Published records\n\n"
HEAD = """What came of each recipe that was run for the record. Written by `python -m analysis.publish`, never
by hand. As a site that opens without a server: [`index.html`](index.html), every claim to see and filter,
and a page for each record, made from the record by `snakemake --cores gallery`.

Claims are judged at 8, 16 and 32 seeds; seeds on which dials had been chosen are left out (`dials.csv`). All
can be judged anew, without any run, by `python -m analysis.publish --rejudge`.

A record's folder, `<recipe>-<scale>`, holds the tables of its report as CSV, among them `claims.csv` (every
verdict, with the difference of each seed), `looks.csv` (what was known at each look), `gates.csv` (the
preconditions of claims), `collapses.csv` (runs that ended far below where they began), `published.csv` (the
paper's numbers, and ours) and `objectives.csv` (the loss that each arm minimised); `numbers.csv.xz`, the
final numbers of every arm and seed; `runs.csv.xz`, the commit, versions, hardware, time and tokens of every
stage (that commit holds the recipe as it was run); and, of newer records, what a page needs beside:
`curves.csv.xz`, learning curves thinned, `shown.json.gz`, a hundred samples, and `packages.txt`, all that was
installed. `registered.yaml`, where the claims were registered before the runs, is what they were then, and
`registration.csv` in which commit. `history.csv` has every verdict that was ever given.

"""
WHEN = """When the claims of each record were written (`written.csv`, found in git: the last commit that
changed what decides a claim, in the history of the recipe, and the first run of a judged seed, in that of
its table of jobs):

"""
EARLIER = "Of an earlier world: the recipe asks anew, on fresh seeds, and has no record of that yet."
FOREST = "forest.png"
BETWEEN_SENTENCES = re.compile(r"(?<=\.)(?<!\bDr\.)\s+(?=[A-Z])")
COLUMNS = ("recipe", "paper", "what it shows", "verdicts", "judged at", "record")
TAIL = """
Beside the records: [how much of each paper is tested](papers.md), statement by statement, and what is
not and why; [what each method cost here](methods.md), needed and gained; [what guides say](guides.md),
and what we found; [what size does to an effect](sizes.md), from `sizes/effects.csv`;
`conformance.csv`, every loss and advantage held to its paper's equation;
`verifier_audit.csv`, right and wrong answers that the verifiers accept, refuse and cannot read;
`reward_stress.csv.gz`, what each of our rewards pays for of the responses that game a reward, by
`python tests/conformance/reward_stress.py`;
`decision_rule.csv`, how often the rule behind the verdicts is wrong and what it finds, in % of families
of claims, simulated by `python tests/conformance/decision_rule.py`; `grpo_speed.csv`, `small_speed.csv`
and `grid_speed.csv`, the speed of our trainers against plain TRL on a toy, a real model and a grid;
`grpo_ladder.csv`, what each of our changes brings on lengths as a reasoning model has;
`gpu_runs.csv`, what trainings on a GPU took; `judge_speed.csv`, what `encore judge` takes for a
thousand runs of 10,000 steps; `plan_speed.csv`, what Snakemake takes to plan grids of thousands of
jobs; `harness.csv`, a model's scores by lm-eval's own settings beside published ones, and those after
RL at scale small (vLLM sampled GSM8K); `other_bases.csv`, what a claim came to on base models of other
pretraining seeds (commit 383c959 with another `seed` in recipes/bases/tiny_lm.yaml).
"""


FIGURES = {  # figure of records, drawn by the gallery -> what it shows
    "r1_zero-cpu": "R1-Zero: claims, paired by seed",
    "dr_grpo-cpu": "Dr. GRPO: claims, paired by seed",
    "dpo-cpu": "DPO: claims, paired by seed",
    "r1-cpu": "R1: claims, paired by seed",
}


def readme(folder: Path, graph: Graph, scoreboard: str = "") -> str:
    """Return the README of `folder`: a row for each record, four figures, and the scoreboard of claims."""
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    rows += [_row(record, graph) for record in folders(folder)]
    table = markdown.lines(rows)
    drawn = [
        f"![{FIGURES[name]}]({name}/forest.png)" for name in FIGURES if (folder / name / FOREST).exists()
    ]
    first, when = notice(folder, graph), written.listed(folder)
    chance = f"{of_suite(folder, graph)}\n\n"
    head = TITLE + (f"**{first}**\n\n" if first else "") + chance + HEAD
    head += f"{WHEN}{when}\n" if when else ""
    return "\n".join(
        part for part in (head + table + TAIL, "".join(f"{line}\n" for line in drawn), scoreboard) if part
    )


def of_suite(folder: Path, graph: Graph) -> str:
    """Return a sentence on how many of the claims with the verdict *shown* are expected to be false."""
    return str(suite.expected(findings(record, graph) for record in current(folder, graph)))


def findings(record: Path, graph: Graph) -> list[claims.Verdict]:
    """Return the verdicts on the findings that a record's recipe claims; sanity checks are left out."""
    name, _, scale = record.name.rpartition("-")
    recipe = graph.recipes[name]
    stated = summary.stated(recipe, scale, claims.read_verdicts(record / "claims.csv"))
    return whose.of_recipe(recipe, stated).findings


def notice(folder: Path, graph: Graph) -> str:
    """Return sentences on which records are registered, and which have one base model for all seeds.

    The text is empty if all records are registered, and each of their seeds has its own base model.
    """
    runs = {record.name: run_of(record, graph) for record in folders(folder)}
    shared = [name for name, run in runs.items() if bases.one_base(run)]
    said = _of_registration(folder), bases.one_base_each(runs.values()), bases.others(folder, shared)
    return " ".join(filter(None, said))


def _of_registration(folder: Path) -> str:
    """Return a sentence on which records are registered; "" if all are, or if there are no records."""
    registered = {record: (record / REGISTERED).exists() for record in folders(folder)}
    names = [title(record.name) for record, holds in registered.items() if holds]
    if all(registered.values()):
        return ""
    if not names:
        return "No record is registered: its claims were in no commit of `encore register` before its runs."
    others = len(registered) - len(names)
    return f"Registered before their runs: {', '.join(names)}; not registered: the other {others} records."


def run_of(record: Path, graph: Graph) -> Run:
    """Return the run that a record is of; arms come from the recipe, and seeds from its table of jobs."""
    name, _, scale = record.name.rpartition("-")
    runs = pd.read_csv(record / RUNS)
    seeds = sorted(runs.seed[~runs.stage.str.contains("/")].unique())
    arms = tuple(graph.recipes[name].arms(scale))
    numbers = pd.read_csv(record / NUMBERS, usecols=KEY)
    return Run(as_run(record, graph, numbers), name, scale, arms, tuple(map(int, seeds)))


def _row(record: Path, graph: Graph) -> tuple[str, ...]:
    name = record.name.rpartition("-")[0]
    document, (shows, verdicts, judged) = graph.recipes[name].document, told(record, graph)
    return (
        f"[`{name}`](../../{next(iter(graph.recipes[name].files.shown))})",
        f"[{_cell(document.title)}]({document.url})",
        _cell(shows),
        verdicts,
        judged or f"{seeds(pd.read_csv(record / RUNS))} seeds",
        f"[{record.name}]({record.name})",
    )


def told(record: Path, graph: Graph) -> tuple[str, str, str]:
    """Return three texts on a record: its result, its number of verdicts of each kind, and judged_at()."""
    name, _, scale = record.name.rpartition("-")
    recipe, verdicts = graph.recipes[name], claims.read_verdicts(record / "claims.csv")
    if of_earlier_world(record, graph):
        return EARLIER, whose.counts(verdicts), judged_at(verdicts)
    shows = headline(recipe.document.found, scale)
    return shows, whose.of_recipe(recipe, summary.stated(recipe, scale, verdicts)).told(), judged_at(verdicts)


def judged_at(verdicts: Sequence[claims.Verdict]) -> str:
    """Return the planned look that a record has reached as text; "" if the record has no claims."""
    if not verdicts:
        return ""
    seeds = verdicts[0].asked
    passed = [look for look in LOOKS if look <= seeds]
    return f"look {len(passed)} ({seeds} seeds)" if passed else f"{seeds} of {LOOKS[0]} seeds: no look yet"


def headline(text: str, scale: str) -> str:
    """Return the first sentence on a scale in a recipe's text `found`; an empty text if there is none.

    A sentence that begins with `At scale small` is about this scale. All others are about scale cpu.
    """
    for sentence in BETWEEN_SENTENCES.split(text.strip()):
        named = re.match(r"At scale (\w+)", sentence)
        if (named[1] if named else "cpu") == scale:
            return sentence
    return ""


def seeds(runs: pd.DataFrame) -> int:
    """Return the number of seeds of the recipe's own stages; names of other recipes' stages have a /."""
    return runs.seed[~runs.stage.str.contains("/")].nunique()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
