import hashlib
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from analysis import analyse, command_line, sections_figures
from analysis.numbers import table as table_module
from analysis.numbers.run import Run
from analysis.numbers.table import COLUMNS, collect
from analysis.page import style
from analysis.training import learning_curves
from analysis.verdicts import claims, summary
from recipes.spec.graph import Graph
from recipes.spec.recipe import Recipe

FIGURES = 14  # of one arm without a ladder: what compares arms has nothing to show


def only(names: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw these figures alone."""
    every = sections_figures.plans
    monkeypatch.setattr(
        sections_figures, "plans", lambda *about: (plan for plan in every(*about) if plan.name in names)
    )


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_second_run_gives_the_same_bytes(quick, quick_out, tmp_path, monkeypatch):
    few = {"forest", "ratios", "entropy-accuracy", "accuracy"}  # one of each kind
    only(few, monkeypatch)
    analyse.analyse(quick, tmp_path)
    first, second = digests(quick_out), digests(tmp_path)
    changed = {name for name in second if second[name] != first[name]}
    assert changed == {"figures/index.json"}
    assert len(second) == len(first) - 2 * (FIGURES - len(few))


def test_everything_promised_is_written(quick_out):
    names = set(digests(quick_out))
    for table in ("arms", "claims", "published", "health", "cost", "objectives"):
        assert {f"{table}.csv", f"{table}.md", f"{table}.tex", f"{table}.html"} <= names
    wanted = {"forest", "accuracy", "length", "reward", "entropy", "kl", "clip", "zero-variance", "pass-at-k"}
    wanted |= {"accuracy-by-difficulty", "length-by-difficulty"}
    wanted |= {"entropy-accuracy", "accuracy-by-effort", "ratios"}
    drawn = {figure["name"] for figure in json.loads((quick_out / "figures/index.json").read_text())}
    assert drawn == wanted
    assert len(drawn) == FIGURES
    assert {f"figures/{name}.{kind}" for name in drawn for kind in ("svg", "png")} <= names


def test_summary_is_five_lines_with_the_key_numbers(quick_out):
    lines = (quick_out / "summary.txt").read_text().splitlines()
    assert len(lines) == 5
    assert lines[0].endswith("cpu scale, 2 seeds, 1 arm")
    assert "0.190 [0.179, 0.200] \N{RIGHTWARDS ARROW} 0.7" in lines[1]
    assert lines[2].startswith("Response length in tokens: 21.0")
    assert "3 not tested (a decision takes 5 seeds)" in lines[3]
    assert lines[4].startswith("rl-lifts-accuracy supported so far (d = 0.6")


def test_the_quickstart_says_why_a_claim_is_not_tested(quick_out):
    verdicts = pd.read_csv(quick_out / "claims.csv").set_index("id")
    assert verdicts.verdict["random-reward-does-not-help"] == "not tested"
    assert verdicts.note["random-reward-does-not-help"] == "arm random was not run"


def test_svg_is_well_formed_and_keeps_its_labels(quick_out):
    for path in (quick_out / "figures").glob("*.svg"):
        ET.parse(path)
    text = (quick_out / "figures/forest.svg").read_text()
    assert ">rl-lifts-accuracy<" in text


def test_an_arm_has_one_colour_in_every_report(run, quick):
    palette = style.colours(run.recipe.arms("cpu"))
    assert len(set(palette.values())) == 6
    assert style.colours(quick.recipe.arms("cpu"))["random"] == palette["random"]


def test_no_two_of_many_arms_look_alike():
    arms = [f"arm-{i}" for i in range(18)]
    lines = style.dashes(arms)
    assert len({(colour, lines[arm]) for arm, colour in style.colours(arms).items()}) == 18


def test_a_run_without_artefacts_still_reports(run, tmp_path):
    empty = Run(run.graph, run.name, run.scale, run.arms, run.seeds, tmp_path)
    lines = analyse.analyse(empty, tmp_path / "out")
    assert lines[3] == "Published claims: 6 not tested (a decision takes 5 seeds)"
    assert lines[4] == "No claim could be tested."
    assert json.loads((tmp_path / "out/figures/index.json").read_text()) == []


def test_a_sweep_without_evaluations_says_so(run):
    bare = Recipe(run.name, run.spec | {"evals": {}, "claims": []})
    numbers = pd.DataFrame(columns=COLUMNS)
    lines = summary.lines(replace(run, graph=Graph({**run.graph.recipes, run.name: bare})), numbers, [])
    assert lines[1] == "Accuracy (no model is evaluated): \N{EN DASH}"


def test_a_missing_seed_is_named_and_the_rest_is_judged(run):
    table = collect(run)
    table = table[~((table.arm == "base-recipe") & (table.seed == 1) & (table.node == "after"))]
    verdict = claims.judge(run.spec["claims"][0], table, run.scale, run.seeds)
    assert verdict.seeds == (0, 2)
    assert verdict.note == "no number for seed 1"


def test_long_curves_are_thinned_without_moving_them():
    steps = range(1, 10_001)
    rows = pd.DataFrame({"step": steps, "seed": 0, "value": [float(s) for s in steps]})
    thin = table_module.binned(rows)
    assert len(thin) == table_module.POINTS
    assert thin[0].to_list() == pytest.approx(thin.index.to_list())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"beta": 0.0}, ""),
        ({"beta": 0.001}, "the model that training started from"),
        ({"beta": 0.001, "sync_ref_model": True, "ref_model_sync_steps": 400}, "training started from"),
        (
            {"beta": 0.001, "sync_ref_model": True, "ref_model_sync_steps": 20},
            "follows the policy every 20 steps",
        ),
    ],
)
def test_the_kl_figure_names_its_reference(run, args, words):
    grpo = run.spec["stages"]["grpo"] | {"args": {"max_steps": 60, **args}}
    recipe = Recipe(run.name, run.spec | {"stages": {"grpo": grpo}})
    said = learning_curves.reference(replace(run, graph=Graph({**run.graph.recipes, run.name: recipe})))
    assert words in said
    assert bool(words) == bool(said)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--recipe", "toy_zer", "--scale", "cpu"], 'unknown recipe "toy_zer"; did you mean "toy_zero"?'),
        (["--recipe", "toy_zero", "--scale", "cpus"], 'unknown scale "cpus"; did you mean "cpu"?'),
        (["--recipe", "toy_zero", "--scale", "cpu", "--seeds", "0"], "--seeds: expected a whole number"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(argv, message, run, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command_line, "load_all", lambda folder: run.graph.recipes)
    assert command_line.main("", lambda *args: None, [*argv, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
