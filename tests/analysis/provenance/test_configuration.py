"""What a page says of how to get it again, and of the recipe."""

from dataclasses import replace
from pathlib import Path

import pytest

from analysis import command_line
from analysis.numbers.run import Run
from analysis.provenance import configuration
from encore.recipe import load


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
