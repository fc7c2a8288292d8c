"""Stage `label_steps`: roll-outs against the world's own verifier, each beginning once; what learns them."""

import json
import random
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jobs
import pytest
import stage_runs
import typed
from stage_runs import finished

from encore import worlds
from encore.data import samples, step_labels
from encore.errors import UserError
from encore.runtime import files
from encore.stages import label_steps
from encore.stages.step_reward import as_given, solutions

WORLD: Any = worlds.make(stage_runs.TASK)
TOKENIZER = worlds.tokenizer([WORLD])
ARGS = {"num_generations": 4, "temperature": 1.0, "top_p": 1.0, "max_completion_length": 40}
CONFIG = {"by": "rollouts", "args": ARGS}
STEP = re.compile(r"(-?\d+)\+(-?\d+)=(-?\d+)")


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


def drawn(problems: int) -> list[Any]:
    """Sums with three completions each, two of which are the same."""
    rng, rows = random.Random(0), []
    for _ in range(problems):
        problem = WORLD.problem(rng)
        right = WORLD.document(problem, "chain", rng)
        rows.append(row_of(problem, [right, WORLD.document(problem, "chain_error", rng), right]))
    return rows


def upstream(folder: Path, rows: list[Any]) -> Path:
    samples.save(rows, folder / "final")
    made = finished(folder)
    record = json.loads(made.read_text())
    files.write_json(
        made,
        record | {"kind": "sample", "config": {"task": stage_runs.TASK, "template": stage_runs.TEMPLATE}},
    )
    return made


def carries_on(asked: list[list[str]], right: int) -> Any:
    """In place of `draw`: goes on without a slip in the first `right` of the roll-outs, else far off."""

    def draw(prompts: list[str], args: Any, *rest: Any) -> Any:
        asked.append([*prompts])
        texts = []
        for prompt in prompts:
            question, begun = prompt.removeprefix("<user>").split("<assistant>")
            slips = sum(int(c) - int(a) - int(b) for a, b, c in STEP.findall(begun))
            total = sum(map(int, question.rstrip("=").split("+"))) + slips
            texts += [
                f"</think><answer>{total + 100 * (number >= right)}</answer>"
                for number in range(args.num_generations)
            ]
        return SimpleNamespace(completions=texts, tokens=0, parameters=0)

    return draw


@pytest.mark.parametrize(
    ("estimation", "right", "label"), [(None, 1, 1.0), ("soft", 1, 0.25), ("soft", 4, 1.0), ("hard", 0, 0.0)]
)
def test_a_step_is_as_right_as_what_follows_from_it(tmp_path, monkeypatch, estimation, right, label):
    rows, asked = drawn(20), []
    monkeypatch.setattr(label_steps, "draw", carries_on(asked, right))
    monkeypatch.setattr(label_steps, "locate_policy", lambda config, inputs: (None, TOKENIZER))
    config = CONFIG | ({"estimation": estimation} if estimation else {})
    made = upstream(tmp_path / "sample", rows)
    found = jobs.run(label_steps, config, {"data": made}, tmp_path / "out")
    (prompts,) = asked
    assert len(set(prompts)) == len(prompts)  # the two equal completions, and equal first steps, once
    finished(tmp_path / "out")
    solved = step_labels.load(tmp_path / "out" / "metrics.json")
    for row, given in zip(solved, rows, strict=True):
        problem = worlds.Problem(row["question"], row["answer"], row["difficulty"])
        assert row["completions"] == given["completions"]
        for text, own in zip(row["completions"], row["steps"], strict=True):
            *steps, (end, answer) = own
            assert (end, answer) == (len(text), WORLD.verify(problem, text))
            truths = WORLD.steps(problem, text)
            slipped = [not all(truths[: n + 1]) for n in range(len(truths))]
            assert [value for _, value in steps] == [0.0 if slip else label for slip in slipped]
            assert [place for place, _ in steps] == WORLD.step_ends(problem, text)
    if label == 1.0:
        assert found.metrics["accuracy/steps"] == found.metrics["auc/steps"] == 1.0
    assert found.metrics["rollouts"] == 4 * len(prompts)


def test_labels_stand_at_the_tokens_that_end_the_steps():
    (row,) = drawn(1)
    row["steps"] = [[(15, 0.5), (len(text), 1.0)] for text in row["completions"]]
    for one, text in zip(
        solutions([row], as_given(TOKENIZER), TOKENIZER, list), row["completions"], strict=True
    ):
        before = len(TOKENIZER(row["prompt"])["input_ids"])
        assert one["labels"] == [0.5, 1.0]
        assert TOKENIZER.decode(one["ids"][before : one["places"][0] + 1]).startswith(text[:15])
        assert one["places"][1] == len(one["ids"]) - 1


TASK = {"file": "steps.jsonl", "prompt": "prompt", "completion": "completions", "labels": "labels"}
PRM800K = [  # as trl-lib/prm800k and trl-lib/math_shepherd have them
    {"prompt": "1+1?", "completions": ["One and one.", "It is 2."], "labels": [True, True]},
    {"prompt": "2+2?", "completions": ["Two and two.", "It is 5."], "labels": [True, False]},
]


def test_the_rows_of_a_data_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("steps.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PRM800K))
    first, second = step_labels.of_task(typed.steps(TASK), "<user>{question}<assistant>")
    assert first["prompt"] == "<user>1+1?<assistant>"
    assert first["completions"] == ["One and one.\nIt is 2."]
    assert first["steps"] == [[(12, 1.0), (21, 1.0)]]
    assert (first["truncated"], second["truncated"]) == ([False], [True])
    assert [label for _, label in second["steps"][0]] == [1.0, 0.0]
    assert len(step_labels.of_task(typed.steps(TASK), "{question}", 1)) == 1
    for wrong in ([True], [True, 2], "both", []):
        Path("steps.jsonl").write_text(json.dumps(PRM800K[0] | {"labels": wrong}) + "\n")
        with pytest.raises(UserError, match=r"task.labels: row 0: expected a label from 0 to 1 of each step"):
            step_labels.of_task(typed.steps(TASK), "{question}")


@pytest.mark.slow
def test_roll_outs_of_a_policy_have_the_same_bits_and_a_reward_model_learns_them(base: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(base, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        upstream(Path("results/sample"), drawn(60))
    inputs = {"policy": "results/pretrain/metrics.json", "data": "results/sample/metrics.json"}
    command = stage_runs.command("label_steps", CONFIG, **inputs)
    assert stage_runs.run("label_steps", command, folder) == 0, (folder / "err.txt").read_text()
    before = stage_runs.outputs(folder, "label_steps")
    for place in ("results/label_steps", "checkpoints/label_steps"):
        shutil.rmtree(folder / place)
    assert stage_runs.run("label_steps", command, folder) == 0
    assert stage_runs.outputs(folder, "label_steps") == before
    args = {"per_device_train_batch_size": 8, "learning_rate": 1e-2, "lr_scheduler_type": "constant"}
    learn = stage_runs.command(
        "reward_model",
        {"labels": "steps", "args": args | {"max_steps": 4, "save_steps": 4}},
        policy=inputs["policy"],
        data="results/label_steps/metrics.json",
    )
    assert stage_runs.run("reward_model", learn, folder) == 0, (folder / "err.txt").read_text()
    metrics = json.loads((folder / "results/reward_model/metrics.json").read_text())["metrics"]
    assert metrics["completions/train"] + metrics["completions/validation"] == 180
