"""Write the record of a run, which is kept in git.

    python -m analysis.publish --recipe r1_zero --scale cpu --seeds 5 --out results/published/r1_zero-cpu
    python -m analysis.publish --index
    python -m analysis.publish --rejudge

The record has the report's tables as CSV, and these files:

- numbers.csv.xz: the final numbers of every arm and seed;
- runs.csv.xz: commit (which has the recipe as it was), versions, hardware, time and tokens of every stage;
- shown.json.gz and curves.csv.xz: a hundred samples, and learning curves with few points;
- packages.txt: the installed packages with their versions;
- registered.yaml, if claims were registered before the first run.

If a claim came out reversed, its recipe must say what in our world may cause this (`world`), or nothing is
written. For a record in results/published, the pages there (README, index.html, methods.md, guides.md and
papers.md) are written as well; --index writes these pages without a new record. --rejudge judges every record
anew, from its numbers and the present recipe: no run is repeated, and seeds on which a dial was chosen are
left out. A record of an earlier world (its recipe now judges other seeds) keeps its verdicts.
"""

import gzip
import json
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

import pandas as pd

from analysis import command_line, guides, methods, papers, statements
from analysis.gallery import history, scoreboard
from analysis.gallery import index as first_page
from analysis.numbers import recorded
from analysis.numbers.recorded import (
    CURVES,
    DECIMALS,
    NUMBERS,
    PACKAGES,
    current,
    folders,
    of_record,
    thinned,
)
from analysis.numbers.run import SHOWN, Run
from analysis.numbers.table import collect
from analysis.page.tables import Table
from analysis.provenance import jobs, registration
from analysis.provenance.completions import Rollout
from analysis.results import Results, build, views
from analysis.sizes import effects, trends
from analysis.sizes import page as sizes
from analysis.training import series
from analysis.verdicts import claims, records, reversals
from analysis.verdicts.build import build as judge
from analysis.verdicts.view import tables
from encore.errors import UserError
from encore.recipe.claims import FRONTIER
from encore.recipe.graph import Graph
from encore.recipe.load import load_all
from encore.recipe.sensitivity import MARK
from encore.runtime import provenance

RECORDS = "results/published"
KEY = ["arm", "seed", "node", "metric"]
OURS = "encore-rl"
BUILDS = {"cpu", "cu126", "cu128", "cu129", "cu130"}  # builds of torch, each with its own package index
MOST = 100  # largest number of training completions in a record
INTERVAL = {"low": DECIMALS, "high": DECIMALS}  # decimals of intervals, few because a record is kept in git


def publish(run: Run, out: Path, report: str) -> None:
    """Write the record of a run into the folder `out`; `report`: the page that must exist, such as `report`.

    Raises UserError if the page is missing, if a stage was trained by code that no commit has, or if a
    reversed claim has no cause.
    """
    page = run.root / f"results/{run.name}/{run.scale}/{report}.html"
    if not page.exists():
        raise UserError(f"{page}: missing; run `snakemake --cores {run.name}` first")
    runs = jobs.committed(run)
    results = build(run, collect(run))
    reversals.check_reversals(run.recipe, results.verdicts.last)
    out.mkdir(parents=True, exist_ok=True)
    if (out / NUMBERS).exists():  # an earlier record, which may have had more tables
        for path in out.glob("*.csv*"):
            path.unlink()
    write_tables(results, out)
    registration.keep(run, results.provenance.registration, out)
    numbers = worth_keeping(results.numbers, run.document.metrics)
    folder_tells = ["recipe", "scale"]
    numbers = numbers.drop(columns=["step", "source", *folder_tells]).round(INTERVAL)
    recorded.write(numbers, out / NUMBERS)
    jobs.write(runs, out / recorded.RUNS)
    kept = recorded.recorded(run, pd.read_csv(out / NUMBERS, low_memory=False))
    for table in tables(judge(run, kept)):  # judged by the digits that the record keeps
        table.numbers.to_csv(out / f"{table.name}.csv", index=False)
    curves = thinned(results.table, series.drawn())
    if len(curves):
        recorded.write(curves, out / CURVES)
    (out / SHOWN).write_bytes(gzip.compress(_samples(results).encode(), mtime=0))
    (out / PACKAGES).write_text(packages(runs), encoding="utf-8")
    if out.parent.resolve() == (run.root / RECORDS).resolve():
        remember([out])
        write_index(out.parent, run.graph)


def write_tables(results: Results, out: Path) -> None:
    """Write the table of every section of a page as CSV into the folder `out`."""
    for table in (table for view in views(results).values() for table in view.tables):
        table.numbers.to_csv(out / f"{table.name}.csv", index=False)


def _samples(results: Results) -> str:
    """Return as JSON what the page shows and no table has: completions, pairs and prompts."""
    provenance, ladder = results.provenance, results.stage_ladder
    shown: dict[str, object] = {
        "provenance": {
            "rollouts": list(map(asdict, few(provenance.rollouts))),
            "policies": provenance.policies,
            "pairs": list(map(asdict, provenance.pairs)),
        }
    }
    if ladder:
        shown["stage_ladder"] = {"prompts": {task: asdict(pair) for task, pair in ladder.prompts.items()}}
    return json.dumps(shown, indent=1, allow_nan=False) + "\n"


def few(rollouts: Sequence[Rollout]) -> Sequence[Rollout]:
    """Return at most MOST of the rollouts: the same number for every arm, evenly spread over its steps."""
    if len(rollouts) <= MOST:
        return rollouts
    arms = list(dict.fromkeys(row.arm for row in rollouts))
    each = max(1, MOST // len(arms))
    chosen = []
    for arm in arms[:MOST]:
        of_arm = [row for row in rollouts if row.arm == arm]
        last = max(1, min(each, len(of_arm)) - 1)
        places = {round(i * (len(of_arm) - 1) / last) for i in range(min(each, len(of_arm)))}
        chosen += [of_arm[place] for place in sorted(places)]
    return chosen


def packages(runs: pd.DataFrame) -> str:
    """Return the text of packages.txt, which `pip install -r` can read, with a line for each package.

    Comments at the beginning name packages that had another version in the runs. Encore itself is a comment,
    because it is installed from its commit.
    """
    versions = {
        package.metadata["Name"].lower(): package.version
        for package in metadata.distributions()
        if package.metadata["Name"]
    }
    ran = {(name, version) for row in runs.versions for name, version in row.items() if name in versions}
    lines = [f"# {name} was {version} in a run" for name, version in sorted(ran) if versions[name] != version]
    if builds := sorted({version.partition("+")[2] for version in versions.values()} & BUILDS):
        lines += [f"--extra-index-url https://download.pytorch.org/whl/{build}" for build in builds]
    lines += [f"{'# ' * (name == OURS)}{name}=={version}" for name, version in sorted(versions.items())]
    return "\n".join(lines) + "\n"


def worth_keeping(numbers: pd.DataFrame, named: Collection[str] = ()) -> pd.DataFrame:
    """Return the final numbers that a record keeps; `named` are the metrics that the recipe names.

    A number that arms or seeds share is kept once, under the first of them. A metric `last/…` that is not
    named is kept only if its `last_fifth/…` is missing. Left out are numbers read off frontiers, which
    analysis.numbers.recorded computes again, and evaluations of sensitivity, which have their own table.
    """
    kept = (numbers.arm != FRONTIER) & ~numbers.node.str.contains(MARK, regex=False)
    numbers = numbers[kept].drop_duplicates(["source", "metric"])
    averaged = numbers.assign(metric=numbers.metric.str.replace(r"^last/", "last_fifth/", regex=True))
    is_averaged = pd.MultiIndex.from_frame(averaged[KEY]).isin(pd.MultiIndex.from_frame(numbers[KEY]))
    return numbers[~(numbers.metric.str.startswith("last/") & is_averaged) | numbers.metric.isin(named)]


def index(root: Path = Path(".")) -> None:
    """Write all pages about the published records: README, methods, guides, papers, and the first page."""
    write_index(root / RECORDS, Graph(load_all(root / "recipes")))


def write_index(folder: Path, graph: Graph) -> None:
    """Write all pages about the records in `folder`."""
    for record in current(folder, graph):
        recipe = graph.recipes[record.name.rpartition("-")[0]]
        reversals.check_reversals(recipe, claims.read_verdicts(record / "claims.csv"))
    board = scoreboard.markdown(scoreboard.lines(folder, graph))
    (folder / "README.md").write_text(records.readme(folder, graph, board), encoding="utf-8")
    (folder / "methods.md").write_text(methods.page(methods.compared(folder, graph)), encoding="utf-8")
    answered = statements.answers(folder, graph)
    topics, listed = (statements.read_groups(module.FILE, graph) for module in (guides, papers))
    (folder / "guides.md").write_text(guides.page(topics, answered), encoding="utf-8")
    (folder / "papers.md").write_text(papers.page(listed, answered, graph), encoding="utf-8")
    (folder / papers.PICTURE).write_text(papers.picture(listed, answered), encoding="utf-8")
    by_size = trends.trends(folder, graph)
    (folder / sizes.FILE).write_text(sizes.page(by_size), encoding="utf-8")
    sizes.pictures(by_size, folder / effects.FOLDER)
    (folder / "index.html").write_text(
        first_page.render(first_page.of_records(folder, graph)), encoding="utf-8"
    )


def remember(records: Iterable[Path]) -> None:
    """Add the verdicts in these records to the history of verdicts beside them."""
    commit = provenance.commit()[0] or "unknown"
    for record in records:
        known, judged = history.read_history(record.parent), pd.read_csv(record / "claims.csv")
        longer = history.extended(known, record.name, judged, provenance.now()[:10], commit)
        longer.to_csv(record.parent / history.FILE, index=False)


def rejudge(root: Path = Path(".")) -> None:
    """Judge every record anew from its numbers, and write the tables, the history and all pages."""
    graph = Graph(load_all(root / "recipes"))
    for record in current(root / RECORDS, graph):  # other records keep their verdicts
        for table in judged_anew(record, graph):
            table.numbers.to_csv(record / f"{table.name}.csv", index=False)
    remember(folders(root / RECORDS))
    index(root)


def judged_anew(record: Path, graph: Graph) -> list[Table]:
    """Return the tables of verdicts of a record, by its numbers and the present recipe.

    Raises UserError if a claim came out reversed and its recipe does not say what may cause this.
    """
    run, numbers = of_record(record, graph)
    verdicts = judge(run, numbers)
    reversals.check_reversals(run.recipe, verdicts.last)
    return tables(verdicts)


if __name__ == "__main__":
    alone = {"--index": index, "--rejudge": rejudge}
    if len(sys.argv) == 2 and sys.argv[1] in alone:
        sys.exit(command_line.status(alone[sys.argv[1]]))
    sys.exit(command_line.main(__doc__, publish, None))
