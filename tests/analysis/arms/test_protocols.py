"""Published protocols on the page: which task follows which, and what it sets itself."""

import pytest
from toy_run import changed, draw_only

from analysis import report
from analysis.arms.protocols import followed

R1 = {"protocol": "deepseek_r1", "max_gen_toks": 64}


def test_each_protocol_is_told_once_with_what_the_task_sets_itself(run):
    assert followed(run) == []
    evals = run.recipe.layers.content["evals"]
    (first, *_) = evals["tasks"]
    plain = {
        key: value for key, value in evals["tasks"][first].items() if key not in ("temperature", "top_p")
    }
    named = changed(run, evals=evals | {"tasks": evals["tasks"] | {first: plain | R1}})
    (row,) = followed(named)  # all six arms have it alike
    assert (row.task, row.protocol) == (first, "deepseek_r1")
    assert row.own == "max_gen_toks 64 in place of 32768"
    assert "2501.12948v1" in row.source


@pytest.mark.slow
def test_it_stands_below_the_table_of_arms(quick, monkeypatch, tmp_path):
    draw_only(set(), monkeypatch)
    evals = quick.recipe.layers.content["evals"]
    (first, *_) = evals["tasks"]
    named = changed(quick, evals=evals | {"tasks": evals["tasks"] | {first: evals["tasks"][first] | R1}})
    pages = [tmp_path / "quick.html", tmp_path / "named.html"]
    for run, page in zip((quick, named), pages, strict=True):
        report.command(run, page, "quickstart")
    assert "published protocols" not in pages[0].read_text()
    assert "by deepseek_r1 (2501.12948v1" in pages[1].read_text()
