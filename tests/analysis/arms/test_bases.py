"""Seeds that share a base model: it is said at once, and so is what other base models gave."""

import re
from dataclasses import replace
from pathlib import Path

import of_record
import pandas as pd
import pytest

from analysis.arms import bases
from encore.recipe.graph import Graph
from encore.recipe.layers import Layers

ROOT = Path(__file__).parents[3]
RECORDS = ROOT / "results/published"
ALL = [path.parent.name for path in sorted(RECORDS.glob("*/index.html"))]
SAID = "All seeds share one base model, so the intervals say nothing of other base models."


def test_it_is_said_where_all_seeds_share_the_base_and_nowhere_else(run):
    varied = replace(run, graph=Graph(dict(run.graph.recipes)))
    base = varied.graph.recipes["tiny_lm"]
    pinned = base.layers.content["stages"]
    stages = {name: {k: v for k, v in pinned[name].items() if k != "seed"} for name in pinned}
    varied.graph.recipes["tiny_lm"] = replace(base, layers=Layers(base.layers.content | {"stages": stages}))
    assert bases.one_base(run) == SAID
    assert bases.one_base(varied) == ""
    assert bases.one_base_each([run, run]).startswith("All seeds of a record share one base model")
    assert "of the record of toy_zero share" in bases.one_base_each([run, varied])
    assert "of each record of toy_zero, toy_zero share" in bases.one_base_each([run, run, varied, varied])
    assert "of each record but toy_zero share" in bases.one_base_each([run, run, varied])
    assert bases.one_base_each([varied]) == ""


def test_what_other_bases_gave_stands_beside_the_record(tmp_path):
    (tmp_path / "toy-cpu").mkdir()
    judged = pd.DataFrame({"id": ["gain"], "metric": ["heldout/accuracy"], "estimate": [0.5]})
    judged.to_csv(tmp_path / "toy-cpu/claims.csv", index=False)
    assert bases.others(tmp_path, ["toy-cpu"]) == ""
    rows = [["toy-cpu", "gain", 1, 1, 0.2], ["toy-cpu", "gain", 1, 2, 0.4], ["toy-cpu", "gain", 2, 1, 0.1]]
    frame = pd.DataFrame(rows, columns=["record", "claim", "base", "seed", "difference"])
    frame.to_csv(tmp_path / bases.OTHERS, index=False)
    said = "toy on 2 other base models gave 0.300, 0.100 for 0.500 (gain; 1 to 2 seeds each)."
    assert bases.others(tmp_path, ["other-cpu", "toy-cpu"]) == said
    assert bases.others(tmp_path, ["other-cpu"]) == ""


def first_lines(page: Path) -> str:
    """What a reader sees below the title, or below the heading on findings, up to a few hundred words."""
    heads = r"<h1>|^# (?!Encore)|^## What it has found"
    below = re.split(heads, page.read_text(encoding="utf-8"), maxsplit=1, flags=re.MULTILINE)[1]
    return " ".join(re.sub(r"<[^>]+>", " ", below).split())[:1000]


ON_ONE = [record for record in ALL if of_record.bases(RECORDS / record) == 1]


@pytest.mark.parametrize("page", ["README.md", "results/published/README.md", "results/published/index.html"])
def test_the_first_lines_say_it_of_the_records(page):
    assert ("share one base model" in first_lines(ROOT / page)) == bool(ON_ONE)
    assert bases.others(RECORDS, ON_ONE) in first_lines(ROOT / page)


@pytest.mark.parametrize("record", ALL)
def test_the_first_lines_of_a_record_say_it_if_it_rests_on_one_base(record):
    first = first_lines(RECORDS / record / "index.html")
    runs = pd.read_csv(RECORDS / record / "runs.csv.xz")
    assert (SAID in first) == (record in ON_ONE and runs.seed.nunique() > 1)
    if record in ON_ONE:
        assert bases.others(RECORDS, [record]) in first
