"""Stage `grpo` on fewer problems than a rollout has prompts: each stands there several times."""

from collections import Counter
from pathlib import Path

import stage_runs
from test_domains import completions, done


def test_every_rollout_asks_each_of_two_problems_in_two_groups(base: Path, tmp_path: Path):
    config = stage_runs.GRPO | {"problems": 2, "copies": 2}
    config["args"] = config["args"] | {"max_steps": 12}
    rows = completions(done(config, base, tmp_path / "run"))
    prompts = {row["prompt"] for row in rows}
    assert len(prompts) == 2
    group = config["args"]["num_generations"]
    for step in {row["step"] for row in rows}:
        counts = Counter(row["prompt"] for row in rows if row["step"] == step)
        assert counts == dict.fromkeys(prompts, 2 * group)
