"""Stage `dpo`: it resumes with the same bits after a kill; what it measures, skips and refuses."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import stage_runs
import torch
from stage_runs import at_training_step, finished, preferences_product
from transformers import PreTrainedConfig

from encore.learning.dpo import length, tokenise
from encore.models.logprobs import sequence_logps
from encore.stages.on_pairs import implicit, learnt

CONFIG: dict[str, Any] = {
    "pairs": "all",
    # 4 steps an epoch of 2 micro-batches, 3 epochs; checkpoints and log lines seldom fall together; the
    # reference follows the policy
    "args": {
        "loss_type": ["sigmoid"],
        "beta": 0.1,
        "optim": "rmsprop",
        "learning_rate": 1e-3,
        "lr_scheduler_type": "linear",
        "warmup_steps": 3,
        "max_length": 64,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "max_steps": 12,
        "save_steps": 4,
        "logging_steps": 3,
        "sync_ref_model": True,
        "ref_model_mixup_alpha": 0.5,
        "ref_model_sync_steps": 5,
        "eval_strategy": "steps",
        "eval_steps": 6,
    },
}
INPUTS = {"policy": "results/pretrain/metrics.json", "data": "results/data/metrics.json"}


def row(a: int, b: int, **keys: Any) -> dict[str, Any]:
    """A sum with three replies: the one with a right chain of thought ranks first, an empty one last."""
    return {
        "prompt": f"<user>{a}+{b}=<assistant>",
        "question": f"{a}+{b}=",
        "answer": str(a + b),
        "difficulty": 2,
        "responses": [
            f"<think></think><answer>{a}</answer>",
            f"<think>{a}+{b}={a + b}</think><answer>{a + b}</answer>",
            f"<think>{a}+{b}={a}</think><answer>{a}</answer>",
        ],
        "truncated": [False, False, False],
        "scores": [-1.0, 1.0, 0.0],
        "ranking": [1, 2, 0],
        "split": "validation" if b == 12 else "train",
        **keys,
    }


@pytest.fixture(scope="module")
def ready(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a policy and preferences: 36 pairs to train on, the last four of each epoch left out."""
    folder = tmp_path_factory.mktemp("dpo") / "run"
    shutil.copytree(base, folder)
    rows = [row(a, b) for a in range(2) for b in range(7, 13)]
    empty, nan = row(2, 3), row(2, 4)
    empty["responses"][0], empty["responses"][2] = "", empty["responses"][1]  # nothing left to compare
    nan["scores"] = [float("nan"), 1.0, 0.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        preferences_product(Path("results/data"), [*rows, empty, nan, row(2, 5)])
    return folder


def run(folder: Path, trap: Any = None, keys: dict[str, Any] | None = None, **args: Any) -> int:
    config = {"pairs": "all", "args": CONFIG["args"] | args} | (keys or {})
    return stage_runs.run("dpo", stage_runs.command("dpo", config, **INPUTS), folder, trap)


def in_the_third_epoch() -> None:
    at_training_step(2 * 9 + 2)  # the middle of step 10; the last checkpoint is of step 8


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        {},
        {"sync_ref_model": False, "precompute_ref_log_probs": True},
        {"sync_ref_model": False, "loss_type": ["orpo"], "keys": {"reference_free": True}},
    ],
)
def test_killed_and_rerun(ready: Path, tmp_path: Path, args: dict[str, Any]):
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        shutil.copytree(ready, folder)
    assert run(folders[0], **args) == 0, (folders[0] / "err.txt").read_text()
    assert run(folders[1], in_the_third_epoch, **args) == -9
    assert run(folders[1], **args) == 0, (folders[1] / "err.txt").read_text()
    assert "resuming from step 8" in (folders[1] / "out.txt").read_text()
    unbroken, again = (stage_runs.outputs(folder, "dpo") for folder in folders)
    assert unbroken == again
    assert not list((folders[1] / "checkpoints/dpo").glob("checkpoint-*"))
    result = json.loads(unbroken["metrics.json"])
    metrics = result["metrics"]
    assert result["inputs"].keys() == {"policy", "data"}
    assert metrics["pairs"] == 3 * 11 + 1
    assert metrics["pairs/validation"] == 3 * 2
    assert metrics["skipped/empty"] == metrics["skipped/nan"] == metrics["skipped/rows"] == 1
    assert metrics["accuracy/train"] > 0.9
    assert metrics["margin/validation"] > 0
    assert metrics["accuracy/gap"] == metrics["accuracy/train"] - metrics["accuracy/validation"]
    if "keys" not in args:  # without a reference TRL compares log-probabilities alone
        assert metrics["last/eval_rewards/accuracies"] == pytest.approx(metrics["accuracy/validation"])
    assert not [name for name in metrics if "runtime" in name or "per_second" in name]
    assert {check["check"] for check in result["health"]} >= {"pairs", "skipped", "chosen_logp", "ties"}


@pytest.mark.slow
def test_what_is_refused_and_what_is_warned_of(ready: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(ready, folder)
    out = folder / "out.txt"
    assert run(folder, gradient_accumulation_steps=16) == 2
    assert "enough_data: one step takes 64 pairs, there are 34" in out.read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        preferences_product(Path("results/data"), [row(1, 2) | {"responses": ["3", "3", "3"]}])
        assert run(folder) == 2
        assert "health check pairs: 0 empty responses" in out.read_text()
        preferences_product(Path("results/data"), [row(1, b) for b in range(4)])
        assert run(folder) == 2
        assert "args.eval_strategy: steps, but there are no validation pairs" in out.read_text()
        assert run(folder, eval_strategy="no", max_length=4) == 2
        assert "enough_data: one step takes" in out.read_text()
        lines = Path("results/data/final/preferences.jsonl")
        lines.write_text(lines.read_text().replace('"ranking"', '"rankings"'))
        finished(Path("results/data"))
        assert run(folder) == 2
        assert "line 1: no column 'ranking'; did you mean \"rankings\"?" in out.read_text()


@pytest.mark.slow
def test_a_prompt_with_a_longer_completion_is_left_out_as_the_reward_model_does(ready: Path, tmp_path: Path):
    shutil.copytree(ready, tmp_path / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "run")
        rows = [row(1, b) for b in range(1, 9)]
        rows[3] |= {"responses": [rows[3]["responses"][0] * 9, *rows[3]["responses"][1:]]}
        preferences_product(Path("results/data"), rows)
        args = {"eval_strategy": "no", "max_length": 20, "max_steps": 1}
        assert run(tmp_path / "run", **args, keys={"problems": 8}) == 2
        message = "problems: 8 asked, but there are 7 prompts to train on"
        assert message in (tmp_path / "run/out.txt").read_text()
        assert run(tmp_path / "run", **args, keys={"problems": 6}) == 0
        result = json.loads(Path("results/dpo/metrics.json").read_text())
        assert (result["metrics"]["skipped/long"], result["metrics"]["pairs"]) == (1, 3 * 6)
        message = next(check["message"] for check in result["health"] if check["check"] == "long")
        assert message == "1 of 8 prompts have a response longer than max_length 20: they are skipped"


class Words:
    """A tokenizer of single characters."""

    eos_token_id = 0

    def __call__(self, texts: list[str], add_special_tokens: bool = True) -> dict[str, list[list[int]]]:
        return {"input_ids": [[ord(character) for character in text] for text in texts]}


def test_the_end_is_where_a_completion_came_to_it():
    pair = {"prompt": "p", "chosen": "ab", "rejected": "c"}
    pair |= {"chosen_truncated": True, "rejected_truncated": False}
    (ids,) = tokenise([pair], Words())
    assert ids == {"prompt_ids": [112], "chosen_ids": [97, 98], "rejected_ids": [99, 0]}
    assert length(ids) == 3


def test_implicit_rewards():
    ratios = {"chosen": torch.tensor([1.0, 0.0, -1.0, 2.0]), "rejected": torch.tensor([0.0, 0.0, 0.0, 0.0])}
    assert implicit(ratios, 0.1, "validation") == pytest.approx(
        {
            "accuracy/validation": 0.625,  # right, tied, wrong, right
            "ties/validation": 0.25,
            "loss/validation": (math.log(2) + sum(math.log1p(math.exp(-x / 10)) for x in (1, -1, 2))) / 4,
            "margin/validation": 0.05,
            "logratio/chosen/validation": 0.5,
            "logratio/rejected/validation": 0.0,
        }
    )
    assert implicit({"chosen": torch.zeros(0), "rejected": torch.zeros(0)}, 0.1, "validation") == {}


@pytest.mark.parametrize(
    ("accuracy", "ties", "chosen", "failed"),
    [
        (0.7, 0.0, 0.1, set()),
        (0.5, 0.0, 0.1, {"held_out"}),
        (0.7, 0.02, 0.1, {"ties"}),
        (0.7, 0.0, -1, {"chosen_logp"}),
    ],
)
def test_health(accuracy, ties, chosen, failed):
    names = ("accuracy/validation", "ties/train", "logratio/chosen/train")
    checks = learnt(dict(zip(names, (accuracy, ties, chosen), strict=True)))
    assert {one["check"] for one in checks if not one["ok"]} == failed
    assert learnt({}) == []


class Counting(torch.nn.Module):
    """A causal model whose logits depend on position and token only, so that any effect of padding shows."""

    def __init__(self):
        super().__init__()
        self.config = PreTrainedConfig(vocab_size=5)
        self.logits = torch.nn.Parameter(torch.randn(9, 5, generator=torch.Generator().manual_seed(0)))

    def forward(self, input_ids, use_cache):
        class Output:
            logits = self.logits[: input_ids.shape[1]] + input_ids[:, :, None] / 10

        return Output


def test_sequence_log_probabilities():
    model = Counting().train()
    prompts = [[1], [2, 3], [4], [1, 2]]
    completions = [[2, 3, 4], [0], [], [1, 1, 1, 1]]
    expected = [
        sum(
            (model.logits[p] + ids[p] / 10).log_softmax(0)[ids[p + 1]].item()
            for p in range(len(x) - 1, len(x) + len(y) - 1)
        )
        for x, y in zip(prompts, completions, strict=True)
        for ids in ([*x, *y],)
    ]
    for batch in (1, 3, 64):
        assert sequence_logps(model, prompts, completions, batch).tolist() == pytest.approx(expected)
    assert model.training
