"""A stage of policy gradient that is killed goes on to the same bits."""

import json
import shutil
from pathlib import Path

import pytest
import stage_runs

from encore.learning import reinforce

STAGE = stage_runs.REINFORCE
POLICY = {"policy": "results/pretrain/metrics.json"}


def in_the_third_epoch() -> None:
    plain, seen = reinforce.roll_out, []

    def roll_out(*args, **kwargs):
        seen.append(1)
        if len(seen) == 3:
            stage_runs.die()
        return plain(*args, **kwargs)

    reinforce.roll_out = roll_out


@pytest.mark.slow
def test_a_killed_stage_starts_again_and_ends_with_the_same_bits(base: Path, tmp_path: Path):
    arguments = stage_runs.command("policy_gradient", STAGE, **POLICY)
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        shutil.copytree(base, folder)
    assert stage_runs.run("policy_gradient", arguments, folders[0]) == 0, (folders[0] / "err.txt").read_text()
    assert stage_runs.run("policy_gradient", arguments, folders[1], in_the_third_epoch) == -9
    assert stage_runs.run("policy_gradient", arguments, folders[1]) == 0
    whole, again = (stage_runs.outputs(folder, "policy_gradient") for folder in folders)
    assert whole == again
    rows = [json.loads(line) for line in whole_lines(folders[0])]
    assert rows == [json.loads(line) for line in whole_lines(folders[1])]
    args = STAGE["args"]
    assert len(rows) == args["epochs"] * args["prompts_per_epoch"] * args["num_generations"]
    assert rows[0].keys() >= {
        "step",
        "prompt",
        "completion",
        "answer",
        "tokens",
        "eos",
        "reward",
        "advantage",
    }
    data = json.loads((folders[0] / "results/policy_gradient/metrics.json").read_text())
    names = {"last_fifth/rewards/format/mean", "last_fifth/kl/k3", "max/ratio_deviation", "last/accuracy"}
    assert data["metrics"].keys() >= names
    assert {one["check"] for one in data["health"]} >= {"gold", "garbage", "context", "accuracy", "entropy"}
    assert "step" in (folders[0] / "out.txt").read_text()


def whole_lines(folder: Path) -> list[str]:
    return (folder / "results/policy_gradient/completions.jsonl").read_text().splitlines()
