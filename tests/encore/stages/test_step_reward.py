"""Stage `reward_model` with `labels`: it learns what verifiers say, and resumes with the same bits."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import stage_runs
import torch
from stage_runs import at_training_step, finished

from encore import worlds
from encore.data import samples
from encore.models import reward_model
from encore.rewards import verifiers
from encore.runtime import files
from encore.stages.step_reward import by_answer, by_world, measured, solutions, until_wrong

WORLD: Any = worlds.make(stage_runs.TASK)
TOKENIZER = worlds.tokenizer([WORLD])
ARGS: dict[str, Any] = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 2,
    "learning_rate": 1e-2,
    "lr_scheduler_type": "cosine",
    "max_steps": 40,
    "save_steps": 7,
    "logging_steps": 4,
    "eval_strategy": "steps",
    "eval_steps": 10,
}


def row_of(problem: Any, texts: list[str]) -> Any:
    return {
        "prompt": stage_runs.TEMPLATE.format(question=problem.question),
        "question": problem.question,
        "answer": problem.answer,
        "difficulty": problem.difficulty,
        "completions": texts,
        "tokens": [len(text) for text in texts],
        "truncated": [False] * len(texts),
    }


def drawn() -> list[Any]:
    """90 sums with two completions each, one of them with a wrong step."""
    rng = random.Random(0)
    problems = [WORLD.problem(rng) for _ in range(90)]
    return [
        row_of(problem, [WORLD.document(problem, kind, rng) for kind in ("chain", "chain_error")])
        for problem in problems
    ]


@pytest.fixture(scope="module")
def ready(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("step_reward") / "run"
    shutil.copytree(base, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        samples.save(drawn(), Path("results/sample/final"))
        made = finished(Path("results/sample"))
        record = json.loads(made.read_text())
        files.write_json(made, record | {"kind": "sample", "config": {"task": stage_runs.TASK}})
    return folder


def run(folder: Path, labels: str, trap: Any = None, **keys: Any) -> int:
    config = {"labels": labels, "args": ARGS} | keys
    inputs = {"policy": "results/pretrain/metrics.json", "data": "results/sample/metrics.json"}
    return stage_runs.run("reward_model", stage_runs.command("reward_model", config, **inputs), folder, trap)


def outputs(folder: Path) -> dict[str, bytes]:
    result, final = folder / "results/reward_model", folder / "checkpoints/reward_model/final"
    paths = [result / "metrics.json", result / "curve.csv", *sorted(final.rglob("*"))]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file()}


def in_the_middle() -> None:
    at_training_step(2 * 17 + 2)  # the middle of step 18; the last checkpoint is of step 14


@pytest.mark.slow
def test_killed_and_rerun(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        shutil.copytree(ready, folder)
    assert run(folders[0], "steps") == 0, (folders[0] / "err.txt").read_text()
    assert run(folders[1], "steps", in_the_middle) == -9
    assert run(folders[1], "steps") == 0, (folders[1] / "err.txt").read_text()
    assert "resuming from step 14" in (folders[1] / "out.txt").read_text()
    assert outputs(folders[1]) == outputs(folders[0])

    metrics = json.loads((folders[0] / "results/reward_model/metrics.json").read_text())["metrics"]
    assert 0 < metrics["right/steps"] < 1
    assert metrics["completions/train"] + metrics["completions/validation"] == 180
    monkeypatch.chdir(folders[0])
    model = reward_model.load(Path("results/reward_model/metrics.json"))  # as any other reward model
    scores = model.score_text([row["prompt"] for row in drawn()], [row["completions"][0] for row in drawn()])
    made = solutions(drawn(), by_world(WORLD, model.tokenizer), model.tokenizer, list)
    again = reward_model.raw_scores(model.members[0], [one["ids"] for one in made[::2]])
    torch.testing.assert_close(scores[0], again)  # in pieces of other sizes, so not to the bit


@pytest.mark.slow
def test_outcome_and_mistakes(ready: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(ready, folder)
    assert run(folder, "outcome") == 0, (folder / "err.txt").read_text()
    metrics = json.loads((folder / "results/reward_model/metrics.json").read_text())["metrics"]
    assert "right/steps" not in metrics
    assert metrics["right/validation"] == pytest.approx(0.5)
    (folder / "out.txt").unlink()
    assert run(folder, "outcome", problems=1000) == 2
    assert "problems: 1000 asked, but there are" in stage_runs.error_line(folder)


def test_steps_after_the_first_wrong_one_are_not_labelled():
    assert until_wrong([(3, 1.0), (5, 0.0), (8, 1.0), (9, 0.0)]) == [(3, 1.0), (5, 0.0)]
    assert until_wrong([(3, 1.0), (9, 1.0)]) == [(3, 1.0), (9, 1.0)]
    assert until_wrong([(9, 0.0)]) == [(9, 0.0)]


def test_labels_stand_where_steps_end():
    problem = worlds.Problem("3+5+7=", "15", 3)
    text = "<think>3+5=8,8+7=16</think><answer>16</answer>"
    label = by_world(WORLD, TOKENIZER)
    (one,) = solutions([row_of(problem, [text])], label, TOKENIZER, until_wrong)
    behind = [TOKENIZER.decode(one["ids"][: place + 1]).partition("<think>")[2] for place in one["places"]]
    assert behind[:2] == ["3+5=8", "3+5=8,8+7=16"]
    assert one["labels"] == [1.0, 0.0]
    (one,) = solutions([row_of(problem, [text.replace("16", "15")])], label, TOKENIZER, until_wrong)
    assert one["labels"] == [1.0, 1.0, 1.0]
    assert one["places"][-1] == len(one["ids"]) - 1


@pytest.mark.parametrize(
    ("verifier", "answer", "right", "wrong"),
    [("math", "0.5", "So \\boxed{1/2}.", "So \\boxed{2}."), ("countdown", "3+4*2", "4*2+3", "3+4+2")],
)
def test_an_answer_of_a_data_set_is_labelled_by_its_verifier(verifier, answer, right, wrong):
    tags = "<answer>{}</answer>" if verifier == "countdown" else "{}"
    row = row_of(worlds.Problem("q", answer, 1), [tags.format(right), tags.format(wrong)])
    label = by_answer(verifiers.verifier(verifier))
    assert [label(row, number, [5, 6, 7]) for number in (0, 1)] == [[(2, 1.0)], [(2, 0.0)]]


def test_measures_are_those_of_brute_force(monkeypatch: pytest.MonkeyPatch):
    given = [{"ids": [1, 2, 3], "places": [0, 2], "labels": [1.0, 0.0]}]
    given += [{"ids": [4, 5, 6, 7], "places": [1, 2, 3], "labels": [1.0, 0.0, 1.0]}]
    scores = {1: 0.5, 2: 2.0, 3: 0.5, 4: 1.0}  # by length of the prefix; a tie counts half
    monkeypatch.setattr(
        reward_model, "raw_scores", lambda model, rows: torch.tensor([scores[len(row)] for row in rows])
    )
    found = measured(None, given)
    flat = [(scores[p + 1], y) for one in given for p, y in zip(one["places"], one["labels"], strict=True)]
    pairs = [(a > b) + (a == b) / 2 for a, y in flat for b, z in flat if y > z]
    assert found["auc/validation"] == pytest.approx(sum(pairs) / len(pairs))
    assert found["right/validation"] == pytest.approx(3 / 5)
    assert found["right/steps"] == pytest.approx(2 / 3)
