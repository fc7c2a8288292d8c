"""Stage `sft`: it resumes with the same bits after a kill; its loss is on the completion only."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import stage_runs
from stage_runs import at_training_step, rows_product

from encore.runtime import curves
from encore.runtime.health import falling_loss
from encore.stages.sft import documents, none_skipped

CONFIG: dict[str, Any] = {
    # 3 steps an epoch of 2 micro-batches, 4 epochs; checkpoints and log lines seldom fall together
    "args": {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "linear",
        "max_steps": 12,
        "save_steps": 4,
        "logging_steps": 3,
    },
}
INPUTS = {"policy": "results/pretrain/metrics.json", "data": "results/data/metrics.json"}


@pytest.fixture(scope="module")
def ready(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a policy and demonstrations: 26 sums, the last two of each epoch left out."""
    folder = tmp_path_factory.mktemp("sft") / "run"
    shutil.copytree(base, folder)
    rows = [
        {
            "prompt": f"<user>{a}+{b}=<assistant>",
            "completion": f"<think>{a}+{b}={a + b}</think><answer>{a + b}</answer>",
            "question": f"{a}+{b}=",
            "answer": str(a + b),
            "difficulty": 2,
        }
        for a in range(2)
        for b in range(13)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        rows_product(Path("results/data"), rows)
    return folder


def run(folder: Path, trap: Any = None, **args: Any) -> int:
    config = {"args": CONFIG["args"] | args}
    return stage_runs.run("sft", stage_runs.command("sft", config, **INPUTS), folder, trap)


def in_the_third_epoch() -> None:
    at_training_step(2 * 9 + 2)  # the middle of step 10; the last checkpoint is of step 8


@pytest.mark.slow
def test_killed_and_rerun(ready: Path, tmp_path: Path):
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        shutil.copytree(ready, folder)
    assert run(folders[0]) == 0, (folders[0] / "err.txt").read_text()
    assert run(folders[1], in_the_third_epoch) == -9
    assert run(folders[1]) == 0, (folders[1] / "err.txt").read_text()
    assert "resuming from step 8" in (folders[1] / "out.txt").read_text()
    unbroken, again = (stage_runs.outputs(folder, "sft") for folder in folders)
    assert unbroken == again
    assert not list((folders[1] / "checkpoints/sft").glob("checkpoint-*"))
    result = json.loads(unbroken["metrics.json"])
    assert result["inputs"].keys() == {"policy", "data"}
    assert result["metrics"]["demonstrations"] == 26
    assert result["metrics"]["last/mean_token_accuracy"] > 0.5
    assert result["metrics"]["last/loss"] > 0


def checked_labels() -> None:
    """Check the labels that the loss is computed from."""
    from encore.learning.sft import SFT

    plain = SFT.compute_loss

    def compute_loss(self, model, inputs, *args, **kwargs):
        end = self._tokenizer.convert_tokens_to_ids("<assistant>")
        for ids, labels in zip(inputs["input_ids"].tolist(), inputs["labels"].tolist(), strict=True):
            prompt = ids.index(end) + 1
            assert labels[:prompt] == [-100] * prompt
            reply = [token for token in ids[prompt:] if token != self._tokenizer.pad_token_id]
            assert [token for token in labels[prompt:] if token != -100] == reply
            assert reply[-1] == self._tokenizer.eos_token_id
        return plain(self, model, inputs, *args, **kwargs)

    SFT.compute_loss = compute_loss


@pytest.mark.slow
def test_the_loss_is_of_the_completion_and_its_end(ready: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(ready, folder)
    assert run(folder, checked_labels, max_steps=3) == 0, (folder / "err.txt").read_text()


@pytest.mark.parametrize(
    ("losses", "checks"), [([2.0, 1.5, 1.0], [True]), ([1.0, 1.5, 2.0], [False]), ([], [])]
)
def test_a_rising_loss_is_warned_of(losses, checks):
    curve = [(step, "loss", value) for step, value in zip((1, 5, 10), losses, strict=False)]
    assert [one["ok"] for one in falling_loss(curve, curves.scalars(curve))] == checks


@pytest.mark.slow
def test_too_little_data_and_what_is_too_long_are_told(ready: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(ready, folder)
    assert run(folder, gradient_accumulation_steps=8) == 2
    assert "enough_data: one step takes 32 demonstrations, there are 26" in (folder / "out.txt").read_text()
    assert run(folder, max_length=20, max_steps=2) == 0
    result = json.loads((folder / "results/sft/metrics.json").read_text())
    # the six with a summand of two digits have 21 tokens
    assert (result["metrics"]["demonstrations"], result["metrics"]["skipped/long"]) == (20, 6)
    told = next(one for one in result["health"] if one["check"] == "long")
    assert not told["ok"]
    assert run(folder, max_length=3, max_steps=2) == 2
    assert "none of 26 demonstrations is usable (26 long)" in (folder / "out.txt").read_text()


def test_what_is_skipped_is_told():
    told = none_skipped(9, {"empty": 2, "multi-turn": 1, "long": 3}, 512)
    assert [(one["check"], one["message"]) for one in told] == [
        ("empty", "2 of 9 demonstrations are empty and skipped"),
        ("multi-turn", "1 of 9 demonstrations are multi-turn and skipped"),
        ("long", "3 of 9 demonstrations are longer than max_length 512 and skipped"),
    ]
    assert none_skipped(9, {}) == []


class Letters:
    """A tokenizer: a letter a token."""

    eos_token_id = 0

    def __call__(self, texts: list[str], **options: Any) -> dict[str, list[list[int]]]:
        return {"input_ids": [[ord(letter) for letter in text] for text in texts]}


@pytest.mark.parametrize("whole", [False, True])
def test_the_prompt_carries_a_loss_only_where_it_is_asked_for(whole: bool) -> None:
    (one,) = documents([{"prompt": "ab", "completion": "c"}], Letters(), whole)
    assert one["input_ids"] == [97, 98, 99, 0]
    assert one["labels"] == ([97, 98] if whole else [-100, -100]) + [99, 0]
