"""Base models by template on the page: the best in the table of arms, and every candidate beside it."""

import json
import shutil
from dataclasses import replace

import pytest
from toy_run import changed, draw_only

from analysis import report
from analysis.arms import levels, templates
from analysis.numbers.recorded import recorded
from analysis.numbers.table import collect, final, measured
from analysis.publish import worth_keeping

ACCURACY = {"own": 0.11, "bare": 0.34, "long": 0.2}


@pytest.fixture(scope="module")
def asked(run, tmp_path_factory):
    """The toy run whose base models were asked by three templates: the best of the first is `bare`."""
    root = tmp_path_factory.mktemp("templates")
    shutil.copytree(run.root, root, dirs_exist_ok=True)
    evals = run.recipe.layers.content["evals"]
    heldout = evals["tasks"]["heldout"] | {"templates": {"bare": "{question}", "long": "Q: {question}"}}
    asked = replace(changed(run, evals=evals | {"tasks": evals["tasks"] | {"heldout": heldout}}), root=root)
    for node in asked.all_nodes():
        if node.name == "before":
            path = asked.sentinel(node)
            found = json.loads(path.read_text())
            task = found["tasks"]["heldout"]
            by_name = {name: number(task, value) for name, value in ACCURACY.items()}
            found["tasks"]["heldout"] = by_name["bare"] | {"template": "bare", "templates": by_name}
            path.write_text(json.dumps(found))
    return asked


def number(task, value):
    return task | {
        "metrics": task["metrics"] | {"accuracy": {"value": value, "low": value - 0.1, "high": value + 0.1}}
    }


def test_every_table_has_the_best_and_all_are_told(asked):
    table = collect(asked)
    assert set(measured(table, "base-recipe/before", "heldout/accuracy").value) == {0.34}
    found = templates.templates(asked, final(table))
    base = found[found.arm == "base-recipe"]
    assert dict(zip(base.template, base.accuracy, strict=True)) == pytest.approx(ACCURACY)
    assert dict(zip(base.template, base.best_of, strict=True)) == {"own": 0, "bare": 3, "long": 0}
    assert list(found.arm.unique()) == ["base-recipe", "no-cot-base"]  # the others share the first one's base
    assert templates.best(found)[("base-recipe", "before", "heldout")] == "bare"
    shown = levels.levels_shown(asked, levels.levels(asked, final(table)), templates.best(found))
    assert "base-recipe/before (best template: bare)" in set(shown.checkpoint)


def test_seeds_whose_best_differs_are_counted(asked, table):
    first = templates.templates(asked, collect(replace(asked, arms=asked.arms[:1])))
    assert set(first.models) == {3}
    frame = first.assign(best_of=[2, 1, 0])
    assert templates.best(frame) == {("base-recipe", "before", "heldout"): "own, bare"}
    assert list(templates.templates_shown(frame)["best of models"]) == ["2/3", "1/3", "0/3"]


def test_a_run_without_candidates_has_no_such_table(run, numbers):
    assert not len(templates.templates(run, numbers))
    assert templates.best(templates.templates(run, numbers)) == {}


def test_a_record_has_each_template_once_and_loads_again(asked):
    table = final(collect(asked))
    again = recorded(asked, worth_keeping(table).drop(columns=["step", "source"]))
    for metric in ("heldout/accuracy", "heldout@own/accuracy"):
        old, new = (measured(one, "random/before", metric).value for one in (table, again))
        assert len(new)
        assert list(new) == list(old)


def test_the_page_says_which(asked, tmp_path, monkeypatch):
    draw_only(set(), monkeypatch)
    one = replace(asked, arms=asked.arms[:1], seeds=asked.seeds[:1])
    report.command(one, tmp_path / "report.html", "report")
    assert (tmp_path / "report/templates.csv").exists()
    page = (tmp_path / "report.html").read_text()
    assert "best template: bare" in page
    assert "Base models by template" in page
