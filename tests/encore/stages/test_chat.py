"""Stages by chat: a world's tokenizer has the chat template that its recipes write out."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import stage_runs

from encore.worlds.answers import formatted

SHORT = stage_runs.GRPO | {"args": stage_runs.GRPO["args"] | {"max_steps": 4, "save_steps": 100}}
PREFILL = "<think>"


def by_chat(chat: Any) -> dict[str, Any]:
    return {key: value for key, value in SHORT.items() if key != "template"} | {"chat": chat}


@pytest.fixture(scope="module")
def runs(base: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of one short `grpo` by template, by chat, and by a chat that begins the reply."""
    stages, folders = [], {}
    for name, config in (
        ("template", SHORT),
        ("chat", by_chat(True)),
        ("begun", by_chat({"prefill": PREFILL})),
    ):
        folders[name] = tmp_path_factory.mktemp(name) / "run"
        shutil.copytree(base, folders[name])
        arguments = stage_runs.command("grpo", config, policy="results/pretrain/metrics.json")
        stages.append(("grpo", arguments, folders[name]))
    assert stage_runs.run_all(stages) == [0, 0, 0], (folders["begun"] / "err.txt").read_text()
    return folders


def rows(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "results/grpo/completions.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_the_same_prompts_give_the_same_weights(runs):
    assert rows(runs["template"]) == rows(runs["chat"])
    final = "checkpoints/grpo/final/model.safetensors"
    assert (runs["template"] / final).read_bytes() == (runs["chat"] / final).read_bytes()


def test_rewards_read_what_the_prompt_has_begun(runs):
    found = rows(runs["begun"])
    assert found
    assert all(row["prompt"].endswith(f"<assistant>{PREFILL}") for row in found)
    assert [row["rewards"]["format"] for row in found] == [
        float(formatted(PREFILL + row["completion"])) for row in found
    ]
