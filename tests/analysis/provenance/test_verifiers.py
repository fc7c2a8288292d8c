"""The audit of the verifiers that a run's data sets name."""

from dataclasses import replace

import pandas as pd

from analysis.numbers.run import Run
from analysis.provenance import verifiers
from encore.recipe.graph import Graph
from encore.recipe.load import load_all

ROWS = (
    "verifier,answers,source,right: accepted,right: refused,right: unreadable,"
    "wrong: accepted,wrong: refused,wrong: unreadable,note\n"
    "math,<b>units</b>,by hand,2000,3,1,2,40,1,\n"
    "math,GSM8K,openai,7,0,0,0,9,0,\n"
    "countdown,sums,by hand,5,0,0,0,5,0,\n"
)


def test_a_run_has_the_rows_of_its_own_verifiers(tmp_path):
    graph = Graph(load_all())
    (tmp_path / "recipes").mkdir()  # with a Snakefile, tmp_path is a clone and has tables of its own
    (tmp_path / "Snakefile").touch()
    paper = Run(graph, "dr_grpo", "paper", ("base-recipe",), (0,), tmp_path)
    assert not len(verifiers.audit(paper))  # there is no audit
    path = tmp_path / verifiers.AUDIT
    path.parent.mkdir(parents=True)
    path.write_text(ROWS)
    assert verifiers.audit(paper).answers.to_list() == ["<b>units</b>", "GSM8K"]
    assert not len(verifiers.audit(replace(paper, scale="cpu")))  # a world judges its own answers


def test_errors_are_counted_over_all_rows(tmp_path):
    path = tmp_path / "audit.csv"
    path.write_text(ROWS)
    rows = pd.read_csv(path, dtype=str)
    says = "of 2,016 right answers 3 refused and 1 unreadable, of 57 wrong ones 2 accepted"
    assert verifiers.errors(rows) == says
    published = pd.read_csv(verifiers.AUDIT, dtype=str)
    assert "wrong ones" in verifiers.errors(published)


def test_the_page_shows_it_folded_and_escaped(quick_results, plain_page, monkeypatch, tmp_path):
    path = tmp_path / "audit.csv"
    path.write_text(ROWS)
    monkeypatch.setattr(verifiers, "audit", lambda run: pd.read_csv(path, dtype=str, keep_default_na=False))
    text = plain_page(quick_results)
    folded = text.split("How often the verifiers err, as audited: of 2,016 right answers")[1]
    assert "&lt;b&gt;units&lt;/b&gt;" in folded.split("</details>")[0]
    assert "<b>units</b>" not in text
