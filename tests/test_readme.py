"""The README and the pages of commands and of code keep their word: commands run, recipes and files exist.

The two pip commands, the quickstart and pytest itself are run by .ci/run, each in an environment of its own.
"""

import csv
import re
from pathlib import Path

import dry_runs
import pytest

from analysis.arms.uncertainty import shares_base
from analysis.gallery import scoreboard
from analysis.numbers.recorded import current
from analysis.verdicts import claims, records
from encore.recipe.graph import Graph
from encore.recipe.load import load_all

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
CODE = sorted({*re.findall(r"(?:`|&& )(snakemake [^`<\n]+)", README + COMMANDS)})
VERDICT = re.compile(
    r"^\| .* \| (\S+) \[(\S+), (\S+)\], (\d+) seeds, ([\w ]+) \| ([\w ]+) \(`(\w+)`, `([\w-]+)`\) \|$",
    re.MULTILINE,
)
RECORDS = ROOT / "results/published"
GRAPH = Graph(load_all(ROOT / "recipes"))
LONGEST = 90  # lines of the README, which a visitor reads in a minute


@pytest.fixture(scope="module")
def planned():
    """command -> the exit status and the output of its dry run."""
    return dry_runs.of(CODE, ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("command", CODE)
def test_command_is_planned(planned, command):
    """Dry, for real it takes minutes; a target that does not exist, or a wrong flag, fails here as well."""
    status, text = planned[command]
    assert status == 0, text


def test_every_paper_is_in_the_readme():
    """Sweeps and base models are no papers; their folders are linked."""
    linked = {ROOT / path for path in re.findall(r"\((recipes/[\w/]+\.yaml)\)", README)}
    files = {recipe.files.file() for recipe in GRAPH.recipes.values()}
    assert linked == {file for file in files if file.name == "recipe.yaml"}


def test_the_verdicts_that_the_readme_shows_are_those_of_the_records():
    rows = VERDICT.findall(README)
    assert len(rows) == 3
    for mean, low, high, seeds, bases, verdict, recipe, claim in rows:
        run = records.run_of(RECORDS / f"{recipe}-cpu", GRAPH)
        assert bases == ("one base model" if shares_base(run) else "a base model each")
        with (ROOT / f"results/published/{recipe}-cpu/claims.csv").open(encoding="utf-8") as file:
            record = next(row for row in csv.DictReader(file) if row["id"] == claim)
        numbers = [
            f"{float(record[name]):.3f}".replace("-", "\N{MINUS SIGN}")
            for name in ("estimate", "low", "high")
        ]
        assert [mean, low, high] == numbers
        assert (seeds, verdict) == (record["n"], record["word"])


def test_the_counts_that_the_readme_gives_are_those_of_the_records():
    papers, ours, _ = scoreboard.groups(
        [line for record in current(RECORDS, GRAPH) for line in scoreboard.of_record(record, GRAPH)]
    )
    tally = claims.tally([*papers, *ours])
    text = README.partition("So far")[2].partition("Three:")[0].replace("\n", " ")
    assert text.startswith(f", on tiny models, of {sum(tally.values())} claims {tally['shown']} are shown (")
    for word, told in (
        ("shown, smaller", "shown but smaller"),
        ("reversed", "are reversed"),
        ("equivalent", "are equivalent"),
        ("open", "are open"),
        ("not tested", "not tested"),
    ):
        assert re.search(rf"\b{tally[word]} {told}", text), word


def test_the_readme_is_read_in_a_minute():
    assert len(README.splitlines()) <= LONGEST


def test_the_file_tree_is_the_tree():
    """Each line names a file or folder, of the folder it is indented under; every package has a line."""
    tree = (
        (ROOT / "docs/code.md").read_text(encoding="utf-8").split("## Where things live")[1].split("```")[1]
    )
    folders, named = [ROOT], set()
    for line in filter(None, tree.splitlines()):
        depth = (len(line) - len(line.lstrip())) // 2
        path = folders[depth] / line.split()[0]
        assert path.exists(), line
        named.add(path)
        folders[depth + 1 :] = [path]
    tops = ("encore", "evals", "analysis")
    packages = {file.parent for top in tops for file in (ROOT / top).rglob("*.py")}
    assert packages <= named


@pytest.mark.parametrize("page", ["README.md", "AGENTS.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_the_ten_files_to_read_exist():
    page = (ROOT / "docs/code.md").read_text(encoding="utf-8")
    files = re.findall(r"^\| \d+ \| `([^`]+)` \|", page, re.MULTILINE)
    assert len(files) == 10
    assert [file for file in files if not (ROOT / file).is_file()] == []
