"""From samples to labels to what is learnt from them; sampling again after a kill gives the same bits."""

import json
import shutil
from pathlib import Path
from typing import Any

import jobs
import pytest
import stage_runs
import torch
from stage_runs import finished

from encore.data import demonstrations, preferences, samples
from encore.errors import UserError
from encore.labels import model_judges
from encore.models import language_model
from encore.recipe.machine import FolderModel
from encore.runtime import files
from encore.stages import label
from encore.stages.sample import summary

TASK = {"world": "preferences", "terms": [3, 3]}
TEMPLATE = stage_runs.TEMPLATE
MIXTURE = {"good": 0.5, "curt": 0.3, "rude": 0.2}
PRETRAIN = stage_runs.PRETRAIN | {
    "task": TASK,
    "corpus": {"documents": 96, "mixture": MIXTURE},
    "model": stage_runs.PRETRAIN["model"] | {"max_position_embeddings": 128},
}
SAMPLE: dict[str, Any] = {
    "task": TASK,
    "template": TEMPLATE,
    "problems": 12,
    "args": {"num_generations": 4, "temperature": 1.0, "top_p": 1.0, "max_completion_length": 24},
}
SFT_ARGS = {
    "per_device_train_batch_size": 4,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "constant",
    "max_steps": 4,
    "save_steps": 2,
}
POLICY = "results/pretrain/metrics.json"
DRAWN = "results/sample/metrics.json"
QUESTION = "{prompt}{first}{second}"


def run(kind: str, config: dict[str, Any], folder: Path, trap: Any = None, **inputs: str) -> int:
    return stage_runs.run(kind, stage_runs.command(kind, config, **inputs), folder, trap)


def result(folder: Path, kind: str) -> dict[str, Any]:
    return json.loads((folder / "results" / kind / "metrics.json").read_text())


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a policy that knows world preferences, and its samples."""
    folder = tmp_path_factory.mktemp("drawn") / "run"
    assert run("pretrain", PRETRAIN, folder) == 0, (folder / "err.txt").read_text()
    assert run("sample", SAMPLE, folder, policy=POLICY) == 0, (folder / "err.txt").read_text()
    return folder


def while_saving() -> None:
    samples.save = lambda *args: stage_runs.die()


@pytest.mark.slow
def test_samples_have_the_same_bits(drawn: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(drawn, folder)
    for place in ("results/sample", "checkpoints/sample"):
        shutil.rmtree(folder / place)
    assert run("sample", SAMPLE, folder, while_saving, policy=POLICY) == -9
    assert run("sample", SAMPLE, folder, policy=POLICY) == 0
    assert stage_runs.outputs(folder, "sample") == stage_runs.outputs(drawn, "sample")
    measured = result(folder, "sample")["metrics"]
    assert (measured["problems"], measured["samples"]) == (12, 48)
    lines = (folder / "checkpoints/sample/final/samples.jsonl").read_text().splitlines()
    assert len(lines) == 12
    assert measured["skipped/long"] == 0
    # a second round draws on other problems
    assert run("sample", SAMPLE | {"problems": 3, "skip": 5}, folder, policy=POLICY) == 0
    later = (folder / "checkpoints/sample/final/samples.jsonl").read_text().splitlines()
    assert [json.loads(row)["question"] for row in later] == [
        json.loads(row)["question"] for row in lines[5:8]
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "inputs"),
    [
        ({"by": "gold"}, {}),
        ({"by": "annotator", "labeller": {"temperature": 0.5}, "validation": 0.3}, {}),
        ({"by": "judge", "labeller": {"bias": 2.0}}, {}),
        (
            {"by": "self", "labeller": {"beta": 0.1}},
            {"policy": POLICY, "reference": "results/sft/metrics.json"},
        ),
        (
            {
                "by": "language_model",
                "labeller": {"model": {"path": "checkpoints/pretrain/final"}, "question": QUESTION},
            },
            {},
        ),
        ({"by": "language_model", "labeller": {"question": QUESTION}}, {"policy": POLICY}),
    ],
)
def test_preferences_of_a_labeller(drawn: Path, tmp_path: Path, config, inputs):
    folder = tmp_path / "run"
    shutil.copytree(drawn, folder)
    if config["by"] == "self":  # it needs a policy that differs from the reference
        corpus = {"task": TASK, "template": TEMPLATE, "corpus": {"documents": 16, "mixture": MIXTURE}}
        assert run("sft", corpus | {"args": SFT_ARGS}, folder, policy=POLICY) == 0, (
            folder / "err.txt"
        ).read_text()
        assert result(folder, "sft")["metrics"]["demonstrations"] == 16
    assert run("label", config, folder, data=DRAWN, **inputs) == 0, (folder / "err.txt").read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        rows = preferences.load(Path("results/label/metrics.json"))
        given = samples.load(Path(DRAWN))
    measured = result(folder, "label")["metrics"]
    assert 0 < len(rows) == measured["problems"] <= 12
    assert len(preferences.pairs(rows)) == measured["pairs"] > 0
    texts = {row["question"]: row["completions"] for row in given}
    assert all(set(row["responses"]) <= set(texts[row["question"]]) for row in rows)
    assert measured["accuracy"] == 1.0 if config["by"] == "gold" else 0.0 <= measured["accuracy"] <= 1.0
    assert ("agreement" in measured) == (config["by"] in ("annotator", "judge"))


@pytest.mark.slow
def test_a_language_model_labels_preferences_once_more(drawn: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(drawn, folder)
    line = {"prompt": "<user>1+2=<assistant>", "chosen": "3. ", "rejected": "4. "}
    (folder / "hub").mkdir()
    (folder / "hub/train.jsonl").write_text(json.dumps(line) + "\n")
    task = {"hub": "hub", "revision": "0" * 40, "split": "train"} | {key: key for key in line}
    assert run("label", {"by": "dataset", "task": task}, folder) == 0, (folder / "err.txt").read_text()
    given = folder / "results/label"
    given.rename(folder / "results/given")
    (folder / "checkpoints/label").rename(folder / "checkpoints/given")
    place = folder / "results/given/metrics.json"
    place.write_text(place.read_text().replace("checkpoints/label", "checkpoints/given"))
    dials = {"model": {"path": "checkpoints/pretrain/final"}, "question": QUESTION}
    again = {"by": "language_model", "labeller": dials}
    inputs = {"data": "results/given/metrics.json"}
    assert run("label", again, folder, **inputs) == 0, (folder / "err.txt").read_text()
    measured = result(folder, "label")["metrics"]
    assert measured["pairs"] == 1
    assert measured["accuracy/given"] in (0.0, 1.0)
    assert "accuracy" not in measured
    assert run("label", {"by": "gold"}, folder, **inputs) == 2
    assert "by: gold takes samples" in (folder / "out.txt").read_text()


def test_the_better_replies_of_a_data_set_are_demonstrations(drawn: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(drawn, folder)
    (folder / "hub").mkdir()
    lines = [
        {"prompt": f"<user>1+{n}=<assistant>", "chosen": f"{n + 1}. ", "rejected": "9. "} for n in (2, 3)
    ]
    (folder / "hub/train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    task = {"hub": "hub", "revision": "0" * 40, "split": "train"} | {key: key for key in lines[0]}
    config = {"by": "dataset", "task": task, "keep": "best"}
    assert run("label", config, folder) == 0, (folder / "err.txt").read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        kept = demonstrations.load(Path("results/label/metrics.json"))
    assert [(row["prompt"], row["completion"]) for row in kept] == [
        (line["prompt"], line["chosen"]) for line in lines
    ]
    assert result(folder, "label")["metrics"]["kept"] == 2


@pytest.mark.slow
def test_an_answer_does_not_depend_on_its_batch(drawn: Path):
    source = language_model.locate(FolderModel(path=str(drawn / "checkpoints/pretrain/final")))
    model, tokenizer = language_model.load(source), language_model.load_tokenizer(source)
    questions = tokenizer(["1", "<user>1+2=<assistant>3", "1+2"])["input_ids"]
    alone = [model_judges.preferred(model, tokenizer, [one], [5, 7])[0] for one in questions]
    together = model_judges.preferred(model, tokenizer, questions, [5, 7])
    assert together == pytest.approx(alone, abs=1e-6)
    assert len({round(p, 6) for p in together}) == 3
    logits = model(torch.tensor([questions[1]])).logits[0, -1]
    assert together[1] == pytest.approx(float(logits[[5, 7]].softmax(0)[0]), abs=1e-6)


@pytest.mark.slow
def test_the_best_feed_a_fine_tuning(drawn: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(drawn, folder)
    assert run("label", {"by": "gold", "keep": "best"}, folder, data=DRAWN) == 0, (
        folder / "err.txt"
    ).read_text()
    kept = result(folder, "label")["metrics"]["kept"]
    data = "results/label/metrics.json"
    assert run("sft", {"args": SFT_ARGS}, folder, policy=POLICY, data=data) == 0, (
        folder / "err.txt"
    ).read_text()
    assert result(folder, "sft")["metrics"]["demonstrations"] == kept


@pytest.mark.slow
def test_dropout_is_of_this_stage_alone(drawn: Path, tmp_path: Path):
    corpus = {"task": TASK, "template": TEMPLATE, "corpus": {"documents": 16, "mixture": MIXTURE}}
    weights = []
    for name, rate in (("with", 0.5), ("without", 0.0)):
        folder = tmp_path / name
        shutil.copytree(drawn, folder)
        args = SFT_ARGS | {"model_init_kwargs": {"attention_dropout": rate}}
        assert run("sft", corpus | {"args": args}, folder, policy=POLICY) == 0, (
            folder / "err.txt"
        ).read_text()
        outputs = stage_runs.outputs(folder, "sft")
        assert json.loads(outputs["config.json"])["attention_dropout"] == 0.0
        weights.append(outputs["model.safetensors"])
    assert weights[0] != weights[1]


@pytest.mark.slow
def test_nothing_to_learn_from_is_one_line(drawn: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(drawn, folder)
    same = {"policy": POLICY, "reference": POLICY}
    assert run("label", {"by": "self"}, folder, data=DRAWN, **same) == 2
    assert "health check pairs: 0 empty responses, 0 without a score" in (folder / "out.txt").read_text()
    assert run("label", {"by": "annotator", "labeller": {"accuracy": 0.75}}, folder, data=POLICY) == 2
    assert "its stage has made no samples" in (folder / "out.txt").read_text()
    assert not (folder / "results/label/metrics.json").exists()


def test_samples_whose_columns_differ_in_length(tmp_path: Path):
    row = {"prompt": "p", "question": "q", "answer": "a", "difficulty": 0}
    row |= {"completions": ["a", "b"], "tokens": [1], "truncated": [False, False]}
    samples.save([row], tmp_path / "final")
    metrics = stage_runs.finished(tmp_path)
    with pytest.raises(UserError, match=r"samples, row 1: expected completions, tokens and truncated of one"):
        samples.load(metrics)


def test_summary_of_samples():
    rows = [
        {"completions": ["a", "a", ""], "tokens": [2, 2, 1], "truncated": [False, True, False]},
        {"completions": ["a", "b", "c"], "tokens": [1, 1, 2], "truncated": [False, False, False]},
    ]
    assert summary(rows) == {
        "problems": 2,
        "samples": 6,
        "truncation_rate": 1 / 6,
        "empty": 1 / 6,
        "distinct": 5 / 6,
        "length": 1.5,
    }


def test_replies_of_a_data_set_are_labelled_by_its_verifier(tmp_path: Path):
    """Of countdown too: no two of these are the same number."""
    task = {"file": "rows.jsonl", "question": "q", "verifier": "countdown"}
    config = {"task": task}
    made = finished(tmp_path)
    files.write_json(made, json.loads(made.read_text()) | {"kind": "sample", "config": config})
    texts = [f"<answer>{reply}</answer>" for reply in ("4*2+3", "3+4+2", "11")]
    row: Any = {"question": "q", "answer": "3+4*2", "difficulty": 0, "completions": texts}
    labels, _, _ = label.score(
        jobs.stage("label", {"by": "verifier"}), jobs.job({"data": made}, tmp_path), [row], None
    )
    assert labels.scores == [[1.0, 0.0, 0.0]]
