"""What is told of importance ratios: metrics of all micro-batches, histograms of the end, a warning."""

import math
from collections import defaultdict

import pytest
import torch
from hand_made import logps, resumed, rollout, trainer

from encore.learning.ratio_statistics import EDGES
from encore.runtime import curves, health


def test_metrics_of_ratios_are_those_of_all_micro_batches(tmp_path):
    built = trainer(tmp_path, epsilon=0.1, epsilon_high=0.3)
    built.state.global_step = 8  # the ninth of ten steps
    ratios = built.parts.measures.ratios
    tokens, outputs, cut = [], [], []
    for built._step, seed in enumerate((1, 2, 3)):
        batch = rollout(built, seed=seed)
        built._compute_loss(built.model, batch)
        with torch.no_grad():
            logs = (logps(built, batch) - batch.old).double()
        for row, keep, advantage in zip(logs, batch.completion_mask.bool(), batch.advantages, strict=True):
            own = row[keep].exp()
            tokens += own.tolist()
            outputs.append(row[keep].mean().exp().item())
            cut += ((own > 1.3) if advantage > 0 else (own < 0.9)).tolist()
    logged: dict[str, float] = {}
    built._metrics["train"] = defaultdict(list)
    built.log(logged)
    values = torch.tensor(tokens, dtype=torch.float64)
    assert logged["ratio/deviation"] == pytest.approx((values - 1).abs().max().item(), rel=1e-5)
    assert logged["ratio/token_std"] == pytest.approx(values.std(correction=0).item(), rel=1e-5)
    assert logged["ratio/sequence_std"] == pytest.approx(
        torch.tensor(outputs).std(correction=0).item(), rel=1e-4
    )
    assert logged["clip_fraction"] == pytest.approx(sum(cut) / len(cut))
    assert ratios.flush() == {}
    assert ratios.counts.sum(dim=1).tolist() == [len(tokens), len(outputs)]
    for counts, found in zip(ratios.counts.tolist(), (tokens, outputs), strict=True):
        for count, low, high in zip(counts, EDGES, EDGES[1:], strict=False):
            assert count == sum(low <= math.log(ratio) < high for ratio in found)
    other = trainer(tmp_path)
    resumed(built, other)
    assert other.parts.measures.ratios.text() == ratios.text()


def test_the_histogram_is_of_the_last_fifth(tmp_path):
    built = trainer(tmp_path)
    ratios = built.parts.measures.ratios
    for step, counted in ((0, False), (7, False), (8, True), (9, True)):
        built.state.global_step = step
        before = ratios.counts.sum().item()
        built._compute_loss(built.model, rollout(built))
        assert (ratios.counts.sum().item() > before) is counted


def test_a_large_ratio_at_the_start_is_told():
    history = [{"step": step, "ratio/at_start": 2e-6, "ratio/deviation": 0.5} for step in range(1, 6)]
    history += [{"step": 6, "ratio/at_start": 3e-4, "ratio/deviation": 0.7, "clip_fraction": 0.0}]
    curve = curves.rows(history)
    scalars = curves.scalars(curve)
    assert scalars["max/ratio_deviation"] == 0.7
    assert scalars["mean/ratio/deviation"] == pytest.approx(3.2 / 6)
    assert scalars["mean/log10_clip_fraction"] == -6
    (found,) = [one for one in health.training(curve, scalars, "full") if one["check"] == "ratio_at_start"]
    assert not found["ok"]
    assert "up to 0.0003 before the first update" in found["message"]
    (found,) = [
        one for one in health.training(curve[:5], scalars, "full") if one["check"] == "ratio_at_start"
    ]
    assert found["ok"]
