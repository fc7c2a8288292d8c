"""Calibration of reward models; tables of reward models, labels and tax."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from analysis.numbers.table import final
from analysis.preferences import (
    alignment_tax,
    reward_models,
)
from analysis.preferences import labels as labels_module


def test_calibration_is_pooled_by_counts(run, palette):
    assert reward_models.stages(run) == {
        "base-recipe": ("base-recipe", "reward_model"),
        "few-labels": ("few-labels", "reward_model"),
    }
    bins = reward_models.calibration(run, "base-recipe", "reward_model")
    parts = [
        pd.read_csv(run.folder(node) / "calibration.csv")
        for seed in run.seeds
        for node in run.nodes("base-recipe", seed)
        if node.name == "reward_model"
    ]
    assert bins["count"].tolist() == (parts[0]["count"] + parts[1]["count"]).tolist()
    weighted = sum(part.observed * part["count"] for part in parts) / sum(part["count"] for part in parts)
    assert bins.observed.tolist() == pytest.approx(weighted.tolist())
    figure = reward_models.draw_calibration(run, palette)
    assert [axis.get_title("left") for axis in figure.axes] == ["base-recipe", "few-labels"]
    assert reward_models.draw_calibration(replace(run, root=run.root / "none"), palette) is None


def test_tables_of_reward_models_labels_and_tax(run, table, preferred):
    models = reward_models.models_shown(preferred.tables["reward_models"]).set_index("")
    assert models.loc["accuracy, held out", "base-recipe"].startswith("0.7")
    assert list(models.columns) == ["base-recipe", "few-labels"]
    labels = labels_module.labels_shown(preferred.tables["labels"])
    assert labels["labelled by"].tolist() == ["annotator, agreement 0.75"] * 2
    assert labels["skipped/equal"].tolist() == ["31"] * 2
    assert "skipped/empty" not in labels  # nothing was
    tax = preferred.tables["alignment_tax"].set_index(["policy", "task"])
    numbers = final(table)

    def accuracy(arm, node):
        here = numbers[(numbers.arm == arm) & (numbers.node == node)]
        return here[here.metric == "tax-sort/accuracy"].sort_values("seed").value.to_numpy()

    change = accuracy("kl-none", "after") - accuracy("base-recipe", "sft")
    assert tax.loc[("kl-none", "tax-sort"), "change"] == pytest.approx(change.mean())
    assert math.isnan(tax.loc[("sft", "tax-sort"), "change"])
    assert "tax-sort, less that of sft" in alignment_tax.tax_shown(tax.reset_index())
