"""Stage `grpo` paid by a process reward model: the rewards on disk are those of the texts on disk."""

from pathlib import Path

import pytest
import stage_runs
from test_domains import completions, curve, done

from encore import worlds
from encore.models import reward_model
from encore.rewards import learned
from encore.rewards.step_rewards import placer


def test_a_policy_is_paid_by_the_chances_of_its_steps(base: Path, tmp_path: Path, monkeypatch):
    config = stage_runs.GRPO | {"rewards": {"reward_model": 1.0}, "aggregation": "min"}
    config["args"] = config["args"] | {"max_steps": 4}
    folder = done(config, base, tmp_path / "run")
    rows = completions(folder)
    monkeypatch.chdir(folder)
    model = reward_model.load(Path("results/reward_model/metrics.json"))
    place = placer(worlds.make(config["task"]), model.tokenizer)
    reward = learned.of_steps(model, model.tokenizer, place, "min")
    for row in rows:
        ids = model.tokenizer(row["completion"])["input_ids"] + [model.tokenizer.eos_token_id] * row["eos"]
        question = row["prompt"].removeprefix("<user>").removesuffix("<assistant>")
        columns = {"question": [question], "answer": [row["answer"]]}
        (expected,) = reward([row["prompt"]], [row["completion"]], [ids], **columns)
        if len(ids) == row["tokens"]:  # special tokens in it are not on disk
            assert row["rewards"]["reward_model"] == pytest.approx(expected, rel=1e-4)
    assert sum(len(model.tokenizer(r["completion"])["input_ids"]) + r["eos"] == r["tokens"] for r in rows) > 8
    assert all(0 < row["rewards"]["reward_model"] < 1 for row in rows)
    assert min(curve(folder, "rewards/reward_model/steps")) >= 1
