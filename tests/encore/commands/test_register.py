"""`encore register` writes what decides a recipe's claims, and refuses where gates were not measured."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from papers import RECIPES
from typer.testing import CliRunner

from analysis.numbers.table import COLUMNS
from encore.commands import command_line
from encore.commands import register as command
from encore.errors import UserError
from encore.recipe import registration
from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_all
from encore.runtime import digests

ROOT = Path(__file__).parents[3]
SEEDS = (1000, 1001, 1002)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder like that of the checkout, with recipes that are not registered and nothing in results/."""
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes")
    shutil.copy(ROOT / "Snakefile", tmp_path)
    for file in (tmp_path / "recipes").rglob("*registered.yaml"):
        file.unlink()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def register(*words: str) -> str:
    done = CliRunner().invoke(command_line.app, ["register", *words])
    if done.exception:
        raise done.exception
    return done.output


def test_a_recipe_is_registered_and_stays_a_recipe(here):
    assert register("r1_zero") == (
        "wrote recipes/r1_zero/registered.yaml: "
        f"{len(RECIPES['r1_zero'].claims('cpu'))} claims, 0 gates; commit it, then run\n"
    )
    register("r1_zero", "--scale", "gpu")
    recipes = load_all("recipes")
    assert set(recipes) == set(RECIPES)
    file = here / "recipes/r1_zero/registered.yaml"
    registered = registration.parse(file.read_text(), str(file))
    for scale in ("cpu", "gpu"):
        now = registration.of(Graph(recipes), recipes["r1_zero"], scale, {})
        assert registered[scale] == now


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["r1_zeo"], 'unknown recipe "r1_zeo"; did you mean "r1_zero"?'),
        (["r1_zero", "--scale", "gpuu"], 'unknown scale "gpuu"; did you mean "gpu"?'),
        (["tiny_lm"], "claims: scale cpu has no claim to register"),
    ],
)
def test_a_mistake_is_told_in_one_line(here, words, told):
    with pytest.raises(UserError) as error:
        register(*words)
    assert told in str(error.value)
    assert len(error.value.lines) == 1


def measure(graph: Graph, values: dict[int, float], monkeypatch) -> None:
    """Leave what jobs of the gates of dr_grpo leave, for these dial seeds."""
    rows = []
    for seed, value in values.items():
        for name, kind, metric, number in (
            ("grpo", "stage", "first_fifth/groups/wrong_in_mixed", value),
            ("before", "eval", "heldout/unrepaired_incorrect", value),
            ("before", "eval", "heldout/unrepaired_correct", 0.0),
        ):
            node = graph.owner(Node("dr_grpo", "cpu", "base-recipe", seed, name, kind))
            Path(node.sentinel).parent.mkdir(parents=True, exist_ok=True)
            Path(node.sentinel).write_text("{}")
            digests.record(node.sentinel).write_text(f"{graph.lineage(node)}\n")
            row = dict.fromkeys(COLUMNS) | {"arm": "base-recipe", "seed": seed, "node": name}
            rows.append(row | {"metric": metric, "value": number, "source": f"{node.sentinel}"})
    monkeypatch.setattr(command, "collect", lambda run: pd.DataFrame(rows))
    monkeypatch.setattr(command, "final", lambda table: table)


def test_gates_are_registered_with_what_dial_seeds_measured(here, monkeypatch):
    with pytest.raises(UserError, match=r"wrong_in_mixed \(0\),.*--arms base-recipe --seeds 1003,1004,1005"):
        register("dr_grpo")
    measure(Graph(load_all("recipes")), dict(zip(SEEDS, (0.61, 0.64, 0.7), strict=True)), monkeypatch)
    assert "2 gates" in register("dr_grpo")
    file = here / "recipes/dr_grpo/registered.yaml"
    gate = registration.parse(file.read_text(), str(file))["cpu"].gates["wrong_in_mixed"]
    assert gate.values == {"1000": 0.61, "1001": 0.64, "1002": 0.7}
    assert gate.mean == 0.65
    assert 0.6 < gate.low < gate.mean < gate.high < 0.75


def test_two_dial_seeds_are_too_few(here, monkeypatch):
    measure(Graph(load_all("recipes")), {1000: 0.61, 1001: 0.64}, monkeypatch)
    with pytest.raises(UserError, match=r"wrong_in_mixed \(2\), visible \(2\)"):
        register("dr_grpo")
    assert not (here / "recipes/dr_grpo/registered.yaml").exists()


def test_what_dial_seeds_measured_in_an_earlier_world_does_not_count(here, monkeypatch):
    graph = Graph(load_all("recipes"))
    measure(graph, dict.fromkeys(SEEDS, 0.6), monkeypatch)
    old = graph.owner(Node("dr_grpo", "cpu", "base-recipe", SEEDS[0], "grpo", "stage"))
    digests.record(old.sentinel).write_text("of another recipe\n")
    with pytest.raises(UserError, match=r"wrong_in_mixed \(2\);"):
        register("dr_grpo")


def test_whoever_registers_after_a_judged_run_is_warned(here):
    first = RECIPES["r1_zero"].first_seed
    for seed in (SEEDS[0], first):
        folder = here / f"results/r1_zero/cpu/base-recipe/seed{seed}/grpo"
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text(json.dumps({}))
    assert f"warning: results/r1_zero/cpu/base-recipe/seed{first} has been run already" in register("r1_zero")


@pytest.mark.parametrize("text", ["[]", "cpu: 3", "cpu: {rule: x}", "cpu: {claims: {}, rule: 2}"])
def test_a_registration_that_was_edited_is_told_of(text):
    with pytest.raises(UserError, match=r"^here: .*encore register$"):
        registration.parse(text, "here")
