"""The README of the published records."""

from dataclasses import replace
from pathlib import Path

import of_record
import pandas as pd
import pins
import pytest
from judged_claims import judge
from papers import RECIPES

from analysis.gallery import scoreboard
from analysis.numbers.recorded import folders, of_earlier_world
from analysis.verdicts import records
from encore.recipe.graph import Graph
from encore.recipe.layers import Layers

ROOT = Path(__file__).parents[3]


def test_the_committed_readme_is_what_the_records_say():
    """If not: python -m analysis.publish --index"""
    folder = ROOT / "results/published"
    board = scoreboard.markdown(scoreboard.lines(folder, Graph(RECIPES)))
    text = records.readme(folder, Graph(RECIPES), board)
    assert "## Scoreboard" in text
    pins.hold("pages of the records", text, (folder / "README.md").read_text(encoding="utf-8"))
    for record in (path.parent.name for path in folder.glob("*/runs.csv.xz")):
        assert f"| [{record}]({record}) |" in text


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("It learns. Then it stops.", "It learns."),
        (
            "Dr. GRPO gains 0.5 of 1.5 tokens; no more. Not more.",
            "Dr. GRPO gains 0.5 of 1.5 tokens; no more.",
        ),
        ("It ends at 0.68. Of eight", "It ends at 0.68."),
        ("No full stop", "No full stop"),
        ("", ""),
    ],
)
def test_the_first_sentence_ends_where_another_begins(text, first):
    assert records.headline(text, "cpu") == first


@pytest.mark.parametrize(
    ("scale", "headline"), [("cpu", "It learns."), ("small", "At scale small it does not."), ("paper", "")]
)
def test_the_headline_is_the_first_sentence_on_the_scale(scale, headline):
    found = "It learns. Another thing. At scale small it does not. At scale small nothing else."
    assert records.headline(found, scale) == headline


def test_a_stage_of_another_recipe_adds_no_seed():
    runs = pd.DataFrame({"stage": ["tiny_lm/pretrain", "grpo", "grpo", "sft"], "seed": [0, 1000, 1001, 1000]})
    assert records.seeds(runs) == 2


def test_a_record_says_to_which_look_it_has_come():
    clear = [0.5, 0.52, 0.48, 0.51] * 4
    assert records.judged_at([judge(clear[:5])]) == "5 of 8 seeds: no look yet"
    assert records.judged_at([judge(clear[:8])]) == "look 1 (8 seeds)"
    assert records.judged_at([judge(clear)]) == "look 2 (16 seeds)"
    assert records.judged_at([]) == ""


@pytest.mark.parametrize(
    ("first", "seeds", "earlier"), [(100, (1, 2), True), (100, (1, 100), False), (8, (1, 2), False)]
)
def test_a_record_is_of_an_earlier_world_where_the_recipe_judges_fresh_seeds(tmp_path, first, seeds, earlier):
    recipe = replace(RECIPES["dapo"], layers=Layers(RECIPES["dapo"].layers.content | {"first_seed": first}))
    record = tmp_path / "dapo-cpu"
    record.mkdir()
    pd.DataFrame({"seed": seeds}).to_csv(record / "numbers.csv.xz")
    assert of_earlier_world(record, Graph({"dapo": recipe})) is earlier


@pytest.mark.parametrize("record", folders(ROOT / "results/published"), ids=lambda record: record.name)
def test_a_page_says_on_how_many_base_models_it_rests_and_whether_it_is_registered(record):
    """Read off the runs of the record, as a reader would who does not trust the page."""
    runs, page = pd.read_csv(record / "runs.csv.xz"), (record / "index.html").read_text(encoding="utf-8")
    head = page[: page.index("</header>")]
    bases = of_record.bases(record)
    own = runs[~runs.stage.str.contains("/")]
    assert ("All seeds share one base model" in head) == (bases == 1 < own.seed.nunique())
    assert bases in (0, 1, own.seed.nunique())
    kept = (record / "registered.yaml").exists()
    if not len(pd.read_csv(record / "claims.csv")):
        return
    assert (">Not registered</a>" in head) != kept
    assert kept == ("laims were fixed before the first run</a>" in head)  # Claims, or Some claims


def test_sanity_checks_are_not_among_the_claims_that_may_be_false_by_chance():
    graph, folder = Graph(RECIPES), ROOT / "results/published"
    shown = [line for line in scoreboard.lines(folder, graph) if line.word in ("shown", "shown, smaller")]
    findings = [line for line in shown if line.kind == "finding"]
    assert len(findings) < len(shown)
    assert records.of_suite(folder, graph).startswith(f"Of the {len(findings)} claims that are shown here")
