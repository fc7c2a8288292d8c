"""What a page says of how to get it again, and of the recipe."""

from dataclasses import replace
from pathlib import Path

import pytest

from analysis import command_line
from analysis.numbers.means import DASH
from analysis.numbers.run import Run
from analysis.provenance import configuration, jobs
from encore.recipe import load
from encore.recipe.graph import Graph
from encore.runtime import suite


@pytest.mark.parametrize(
    ("page", "seeds", "file", "words"),
    [
        ("report", (0, 1, 2), None, "seeds=3"),
        ("report", (0, 2), None, "seeds=0,2,"),
        ("chosen", (2,), None, "seeds=2, arms=base-recipe,format-only"),
        ("report", (0, 1, 2), "my own/toy_zero.yaml", "seeds=3 'recipe=my own/toy_zero.yaml'"),
    ],
)
def test_the_page_tells_how_to_get_it_again(run, page, seeds, file, words):
    """A page of chosen arms names them; without, the command would run all."""
    one = replace(run, arms=run.arms[:2], seeds=seeds, file=Path(file) if file else None)
    command = configuration.commands(one, page).splitlines()[-1]
    assert command == f"snakemake --cores all results/toy_zero/cpu/{page}.html --config scale=cpu {words}"


def test_a_page_made_by_an_installed_package_names_its_wheel(run, monkeypatch):
    monkeypatch.setattr(suite, "package", lambda: suite.Package("9.8", "f" * 64))
    quick = replace(run, arms=run.arms[:1], seeds=(0, 1), file=Path("my own/toy_zero.yaml"))
    install, command = configuration.commands(quick, "quickstart").splitlines()
    assert install == "pip install encore_rl-9.8-py3-none-any.whl"
    assert command == "encore run 'my own/toy_zero.yaml' --scale cpu --seeds 2 --quickstart"
    assert configuration.commands(quick, "chosen").endswith("--seeds 2 --arms base-recipe")


def test_a_page_says_what_is_known_of_code_outside_git(run):
    package = suite.Package("9.8", "0123456789ab" + "f" * 52)
    trained = jobs.jobs(run).assign(commit=None, dirty=None)
    assert configuration.facts(trained)["commit"] == ["none: run outside git"]
    versions = [{"python": "3.11", suite.NAME: str(package)}] * len(trained)
    said = "outside git, from the package encore-rl 9.8 (files 0123456789ab)"
    assert configuration.facts(trained.assign(versions=versions))["commit"] == [f"none: run {said}"]


@pytest.mark.slow
def test_a_recipe_from_elsewhere_has_a_page(quick, quick_results, plain_page, tmp_path, monkeypatch):
    """Its text is read where it lies; there is none of that name in recipes/."""
    own = tmp_path / "toy_zero.yaml"
    own.write_text("# mine alone\n")
    monkeypatch.chdir(quick.root)
    monkeypatch.setattr(load, "load_sound", lambda folder, file: (quick.graph.recipes, {}))
    made = []
    argv = ["--recipe", str(own), "--scale", "cpu", "--seeds", "2", "--out", str(tmp_path)]
    assert command_line.main("", lambda run, *_: made.append(run), argv) == 0
    one: Run = replace(made[0], arms=quick.arms, root=quick.root)
    text = plain_page(replace(quick_results, run=one))
    assert "<i># mine alone</i>" in text
    assert f"The recipe, with the source of each value: {own}" in text
    assert f"recipe={own}" in text


def test_a_page_says_which_jobs_were_deterministic(run, monkeypatch):
    one, plain, chosen = replace(run, arms=run.arms[:2]), Graph.config, []
    assert configuration.deterministic(one) == []
    monkeypatch.setattr(
        Graph, "config", lambda graph, node: plain(graph, node) | {"deterministic": node.name in chosen}
    )
    chosen += ["grpo"]
    assert configuration.deterministic(one) == [", ".join(f"grpo of {arm}" for arm in one.arms)]
    chosen += {node.name for node in one.all_nodes()}
    assert configuration.deterministic(one) == ["every job"]


def test_a_stage_that_one_arm_lacks_is_one_row_and_an_inherited_input_is_none(run, monkeypatch):
    """The table is read: forty settings of a stage that the first arm lacks hid the change that was made."""
    common = {"sft.run": "sft", "sft.rate": "1", "sft.needs.policy": "base@b"}
    sides = {
        "a": {**common, "dpo.needs.policy": "sft@a", "dpo.beta": ".1"},
        "b": {"dpo.needs.policy": "sft@b", "dpo.beta": ".2", **common},
        "c": {
            "dpo.needs.policy": "base@b",
            "dpo.beta": ".1",
            "rl.run": "grpo",
            "rl.rate": "3",
            "after.k": "1",
        },
    }
    monkeypatch.setattr(configuration, "settings", lambda run, arm: sides[arm].items())
    rows = configuration.differences(replace(run, arms=tuple(sides)))
    assert [tuple(row) for row in rows.itertuples(index=False)] == [
        ("b", "dpo.beta", ".1", ".2"),
        ("c", "dpo.needs.policy", "sft@a", "base@b"),
        ("c", "rl", DASH, "grpo"),
        ("c", "sft", "sft", DASH),
    ]
