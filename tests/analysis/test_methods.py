"""The page on which method when, against the tables of the records."""

import shutil
from pathlib import Path

import pandas as pd
import pins
import pytest
from papers import RECIPES

from analysis import methods
from encore.recipe.graph import Graph

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "results/published"


@pytest.fixture(scope="module")
def page():
    return methods.page(methods.compared(RECORDS, Graph(RECIPES)))


def cells(page, arm, record):
    part = page[page.index(f"Record: [{record}]") :]
    line = next(line for line in part.splitlines() if f"| `{arm}` |" in line)
    return dict(zip(methods.COLUMNS, (cell.strip() for cell in line.strip("|").split("|")), strict=True))


@pytest.mark.slow
def test_the_committed_page_is_what_the_records_say(page):
    """If not: python -m analysis.publish --index"""
    pins.hold("pages of the records", page, (RECORDS / "methods.md").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_method_of_one_stage_costs_that_stage_and_gains_what_its_evaluations_say(page):
    shown = cells(page, "rloo", "objectives-cpu")
    runs = pd.read_csv(RECORDS / "objectives-cpu/runs.csv.xz")
    own = runs[(runs.arm == "rloo") & (runs.stage == "grpo")]
    assert float(shown["cost"]) == float(f"{own.flops.mean():.2g}")
    numbers = pd.read_csv(RECORDS / "objectives-cpu/numbers.csv.xz", low_memory=False)
    accuracy = numbers[numbers.metric == "heldout/accuracy"]
    judged = ~accuracy.seed.isin(RECIPES["objectives"].dial_seeds)
    after = accuracy[judged & (accuracy.arm == "rloo") & (accuracy.node == "after")].value.mean()
    before = accuracy[accuracy.node == "before"].value.iloc[0]
    assert float(shown["gain"].split()[0]) == pytest.approx(after - before, abs=6e-4)


@pytest.mark.slow
def test_what_leads_to_both_checkpoints_and_what_only_judges_costs_nothing(page):
    """Fine-tuning leads to DPO's both; the reward model only scores it; PPO trains with it."""
    runs = pd.read_csv(RECORDS / "dpo-cpu/runs.csv.xz")
    mean = runs.groupby(["arm", "stage"]).flops.mean()
    pairs = mean["base-recipe", "sample"] + mean["base-recipe", "label"]
    dpo, ppo = (float(cells(page, arm, "dpo-cpu")["cost"]) for arm in ("base-recipe", "ppo"))
    assert dpo == pytest.approx(pairs + mean["base-recipe", "dpo"], rel=0.05)
    assert ppo == pytest.approx(pairs + mean["base-recipe", "reward_model"] + mean["ppo", "ppo"], rel=0.05)


@pytest.mark.slow
def test_models_in_memory(page):
    """PPO: policy, reference, critic and reward model; DPO: policy and reference; REINFORCE: the policy."""
    found = [cells(page, *of)["models"] for of in (("ppo", "dpo-cpu"), ("base-recipe", "dpo-cpu"))]
    assert [*found, cells(page, "reinforce", "objectives-cpu")["models"]] == ["4", "2", "1"]


def test_without_a_record_its_table_is_left_out(tmp_path):
    shutil.copytree(RECORDS / "objectives-cpu", tmp_path / "objectives-cpu")
    page = methods.page(methods.compared(tmp_path, Graph(RECIPES)))
    assert page.count("\n## ") == 1
