"""Stage `reward_model`: it learns rankings, resumes with the same bits after a kill, reports bad input."""

import csv
import json
import math
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import stage_runs
import torch
from stage_runs import at_training_step, finished, preferences_product, rows_product

from encore.data import preferences
from encore.models import reward_model

CONFIG: dict[str, Any] = {
    # 5 steps an epoch of 2 micro-batches, 3 epochs; checkpoints and log lines seldom fall together
    "comparisons": "grouped",
    "members": 2,
    "args": {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "cosine",
        "max_steps": 15,
        "save_steps": 4,
        "logging_steps": 3,
        "eval_strategy": "steps",
        "eval_steps": 5,
    },
}
INPUTS = {
    "policy": "results/pretrain/metrics.json",
    "data": "results/label/metrics.json",
    "demonstrations": "results/data/metrics.json",
}


def comparisons() -> list[dict[str, Any]]:
    """Sums with two to four ranked answers of different lengths: 44 rows to train on, 8 held out."""
    rng = random.Random(0)
    rows = []
    for number in range(52):
        a, b, size = rng.randrange(8), rng.randrange(8), rng.choice((2, 3, 4))
        wrong = rng.sample(range(1, 9), size)
        scores = [-abs(off - 4.0) - 0.01 * off for off in wrong]
        prompt = f"<user>{a}+{b}=<assistant>"
        rows.append(
            {
                "prompt": prompt,
                "question": f"{a}+{b}=",
                "answer": str(a + b),
                "difficulty": 2,
                "responses": [f"<answer>{'1' * off}</answer>" for off in wrong],
                "truncated": [False] * size,
                "scores": scores,
                "ranking": preferences.by_score(scores),
                "split": "validation" if number % 6 == 5 else "train",
            }
        )
    return rows


@pytest.fixture(scope="module")
def ready(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a policy, comparisons and demonstrations."""
    folder = tmp_path_factory.mktemp("reward") / "run"
    shutil.copytree(base, folder)
    rows = comparisons()
    shown = [row | {"completion": row["responses"][row["ranking"][0]]} for row in rows[:9]]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        preferences_product(Path("results/label"), rows)
        rows_product(Path("results/data"), shown)
    return folder


def run(folder: Path, trap: Any = None, without: tuple[str, ...] = (), **keys: Any) -> int:
    config = CONFIG | keys | {"args": CONFIG["args"] | keys.get("args", {})}
    inputs = {role: path for role, path in INPUTS.items() if role not in without}
    return stage_runs.run("reward_model", stage_runs.command("reward_model", config, **inputs), folder, trap)


def outputs(folder: Path) -> dict[str, bytes]:
    result, final = folder / "results/reward_model", folder / "checkpoints/reward_model/final"
    paths = [result / name for name in ("metrics.json", "curve.csv", "calibration.csv")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths} | {
        str(path.relative_to(final)): path.read_bytes() for path in sorted(final.rglob("*")) if path.is_file()
    }


def in_the_first_member() -> None:
    at_training_step(2 * 9 + 2)  # the middle of step 10; the last checkpoint is of step 8


def in_the_second_member() -> None:
    at_training_step(2 * 15 + 2 * 6 + 1)  # its step 7; the last checkpoint is of step 4


@pytest.mark.slow
def test_killed_and_rerun(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folders = [tmp_path / name for name in ("whole", "first", "second")]
    for folder in folders:
        shutil.copytree(ready, folder)
    assert run(folders[0]) == 0, (folders[0] / "err.txt").read_text()
    for folder, trap in zip(folders[1:], (in_the_first_member, in_the_second_member), strict=True):
        assert run(folder, trap) == -9
        assert run(folder) == 0, (folder / "err.txt").read_text()
        assert outputs(folder) == outputs(folders[0])
        assert [path.name for path in (folder / "checkpoints/reward_model").iterdir()] == [
            "lock",
            "final",
        ] or {path.name for path in (folder / "checkpoints/reward_model").iterdir()} == {"lock", "final"}
    printed = [(folder / "out.txt").read_text() for folder in folders[1:]]
    assert "resuming from step 8" in printed[0]
    assert "all 15 steps were done before" in printed[1]
    assert "resuming from step 4" in printed[1]

    result = json.loads((folders[0] / "results/reward_model/metrics.json").read_text())
    check_metrics(result["metrics"])
    assert result["inputs"].keys() == {"policy", "data", "demonstrations"}
    checks = {one["check"]: one["ok"] for one in result["health"]}
    assert checks["chance"]
    assert checks["pairs"]
    monkeypatch.chdir(folders[0])
    check_model(Path("results/reward_model/metrics.json"), result["metrics"])
    check_files(Path("results/reward_model"), result["metrics"])


def check_metrics(metrics: dict[str, float]) -> None:
    assert metrics["accuracy/validation"] > 0.8
    assert metrics["accuracy/train"] > 0.8
    assert metrics["accuracy/gap"] == pytest.approx(
        metrics["accuracy/train"] - metrics["accuracy/validation"]
    )
    assert metrics["members"] == 2
    assert metrics["prompts/train"] == 44
    assert metrics["prompts/validation"] == 8
    assert metrics["pairs/train"] == sum(
        math.comb(len(row["responses"]), 2) for row in comparisons() if row["split"] == "train"
    )
    assert metrics["reward/demonstrations"] == pytest.approx(0, abs=1e-6)
    assert metrics["members/disagreement"] > 0
    assert {f"skipped/{name}" for name in (*preferences.SKIPPED, "long")} <= metrics.keys()


def check_model(sentinel_file: Path, metrics: dict[str, float]) -> None:
    """The saved members rank as the metrics say, and their mean over demonstrations is 0."""
    model = reward_model.load(sentinel_file)
    assert model.score_text(["<user>1+1=<assistant>"], ["<answer>1</answer>"]).shape == (2, 1)
    rows = comparisons()
    right = total = 0
    for row in rows:
        if row["split"] == "validation":
            rewards = model.score_text([row["prompt"]] * len(row["responses"]), row["responses"]).mean(dim=0)
            order = rewards[torch.tensor(row["ranking"])].tolist()
            for i in range(len(order)):
                for j in range(i):
                    right, total = right + (order[j] > order[i]), total + 1
    assert right / total == pytest.approx(metrics["accuracy/validation"])
    shown = [(row["prompt"], row["responses"][row["ranking"][0]]) for row in rows[:9]]
    mean = model.score_text(*map(list, zip(*shown, strict=True))).mean(dim=1)
    torch.testing.assert_close(mean, torch.zeros(2), rtol=0, atol=1e-5)
    first, second = (member.state_dict() for member in model.members)
    assert not torch.equal(first["score.weight"], second["score.weight"])


def check_files(folder: Path, metrics: dict[str, float]) -> None:
    curve = [*csv.DictReader((folder / "curve.csv").open())]
    names = {row["metric"] for row in curve}
    assert {"loss", "accuracy", "margin", "accuracy/validation", "loss/validation"} <= names
    assert not any(name.startswith("eval_") for name in names)
    assert {row["step"] for row in curve if row["metric"] == "accuracy/validation"} == {"5", "10", "15"}
    calibration = [*csv.DictReader((folder / "calibration.csv").open())]
    assert sum(int(row["count"]) for row in calibration) == metrics["pairs/validation"]


@pytest.mark.slow
def test_options(ready: Path, tmp_path: Path):
    """One model on the pairs of the first twenty prompts, shuffled, with unit rewards around 0."""
    shutil.copytree(ready, tmp_path / "run")
    keys = {"members": 1, "problems": 20, "comparisons": "shuffled", "normalize": "unit"}
    status = run(tmp_path / "run", without=("demonstrations",), **keys, args={"eval_strategy": "no"})
    assert status == 0, (tmp_path / "run/err.txt").read_text()
    result = json.loads((tmp_path / "run/results/reward_model/metrics.json").read_text())["metrics"]
    assert result["prompts/train"] == 20
    assert result["reward/train"] == pytest.approx(0, abs=1e-6)
    assert result["reward/std"] == pytest.approx(1, abs=1e-6)
    assert result["scale"] != 1
    assert result["demonstrations"] == 0
    assert result["accuracy/validation"] > 0.7


@pytest.mark.slow
def test_demonstrations_of_a_world(ready: Path, tmp_path: Path):
    shutil.copytree(ready, tmp_path / "run")
    corpus = {"documents": 16, "mixture": {"direct": 1.0}}
    shown = {"task": stage_runs.TASK, "template": stage_runs.TEMPLATE, "corpus": corpus}
    quick = {"members": 1, "args": {"max_steps": 2}, "demonstrations": shown}
    assert run(tmp_path / "run", without=("demonstrations",), **quick) == 0
    result = json.loads((tmp_path / "run/results/reward_model/metrics.json").read_text())["metrics"]
    assert result["demonstrations"] == 16
    assert result["reward/demonstrations"] == pytest.approx(0, abs=1e-6)
    assert result["reward/train"] != pytest.approx(0, abs=1e-3)


def odd_rows() -> list[dict[str, Any]]:
    """Good rows, and among them some with nothing to learn from."""
    rows = comparisons()
    same = rows[0]["responses"][0]
    rows[0] |= {"responses": [same] * len(rows[0]["responses"])}
    rows[1] |= {"responses": ["", *rows[1]["responses"][1:]]}
    rows[2]["scores"][0] = math.nan
    rows[2] |= {"ranking": preferences.by_score(rows[2]["scores"])}
    rows[3] |= {"responses": [rows[3]["responses"][0] * 9, *rows[3]["responses"][1:]]}
    return rows


@pytest.mark.slow
def test_bad_rows_are_counted_and_reported(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.copytree(ready, tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    rows = odd_rows()
    preferences_product(Path("results/label"), rows)
    assert run(tmp_path / "run", members=1, args={"max_length": 40}) == 0
    result = json.loads(Path("results/reward_model/metrics.json").read_text())
    metrics = result["metrics"]
    size = len(rows[0]["responses"])
    assert metrics["skipped/equal"] == math.comb(size, 2)
    assert (metrics["skipped/empty"], metrics["skipped/nan"], metrics["skipped/long"]) == (1, 1, 1)
    assert metrics["skipped/rows"] >= 1
    bad = {one["check"]: one for one in result["health"] if not one["ok"]}
    assert "1 empty responses, 1 without a score" in bad["skipped"]["message"]
    assert "1 of 51 prompts have a response longer than max_length 40" in bad["long"]["message"]


@pytest.mark.slow
def test_mistakes_are_one_line(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "run"
    shutil.copytree(ready, folder)
    monkeypatch.chdir(folder)
    rows = comparisons()
    cases: list[tuple[str, list[dict[str, Any]], dict[str, Any]]] = [
        ("problems: 45 asked, but there are 44 prompts to train on", rows, {"problems": 45}),
        (
            "enough_data: one step takes 48 prompts, there are 44",
            rows,
            {"args": {"gradient_accumulation_steps": 12}},
        ),
        (
            "needs 77 positions, the model has 64",
            [one | {"prompt": one["prompt"] + "1" * 60} for one in rows],
            {},
        ),
        (
            "does not know a part of the comparison",
            [one | {"prompt": "ß" + one["prompt"]} for one in rows],
            {},
        ),
        ("no held-out comparisons", [one for one in rows if one["split"] == "train"], {}),
        ("pairs:", [one | {"responses": ["1"] * len(one["responses"])} for one in rows], {}),
    ]
    for says, given, keys in cases:
        preferences_product(Path("results/label"), given)
        Path("out.txt").unlink(missing_ok=True)
        assert run(folder, **keys) == 2, says
        printed = Path("out.txt").read_text()
        assert says in printed
        assert sum("error:" in line for line in printed.splitlines()) == 1
    lines = Path("results/label/final/preferences.jsonl")
    lines.write_text(
        "".join(json.dumps({k: v for k, v in one.items() if k != "ranking"}) + "\n" for one in rows)
    )
    finished(Path("results/label"))
    assert run(folder) == 2
    assert "no column 'ranking'" in Path("out.txt").read_text()
