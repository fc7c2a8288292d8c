"""Score judge: a language model compares each reply with the data set's, in both orders."""

import json
from types import SimpleNamespace

import pytest
import torch
from evaluated import parse

from encore import worlds
from encore.errors import UserError
from encore.models import language_model
from encore.recipe.machine import FolderModel
from encore.recipe.shape import Shape
from evals import evaluate, judged, metrics

WORDS = worlds.tokenizer([worlds.make({"world": "preferences"})])
SHAPE = {"hidden_size": 32, "layers": 1, "max_position_embeddings": 128}
QUESTION = "{prompt}: {first} or {second}? "
ASKED = [("1 + 2", "3. "), ("2 + 2", "4. "), ("4 + 3", "7. ")]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The folders of a policy and of a judge, two random models."""
    folders = [tmp_path_factory.mktemp("models") / name for name in ("policy", "judge")]
    for seed, folder in enumerate(folders):
        language_model.build(Shape(**SHAPE), WORDS, seed).save_pretrained(folder)
        WORDS.save_pretrained(folder)
    return folders


@pytest.fixture
def command(models, tmp_path):
    """Evaluates the policy on a task; returns the status, what it wrote, and its rows of samples."""

    def run(task):
        out, samples = tmp_path / "after.json", tmp_path / "after.samples.jsonl"
        status = evaluate.main(
            [
                *("--config", json.dumps({"tasks": {"heldout": task}, "seed": 0})),
                *("--model", "hub:" + json.dumps({"path": str(models[0])}), "--name", "r/cpu/a/seed0/after"),
                *("--out", str(out), "--samples", str(samples)),
            ]
        )
        return status, json.loads(out.read_text()), [*map(json.loads, samples.read_text().splitlines())]

    return run


@pytest.fixture
def task(models, tmp_path):
    rows = "".join(json.dumps({"q": question, "a": reply}) + "\n" for question, reply in ASKED)
    (tmp_path / "asked.jsonl").write_text(rows)
    return {
        "task": {"file": str(tmp_path / "asked.jsonl"), "question": "q", "answer": "a"},
        "template": "<user>{question}<assistant>",
        "items": 3,
        "samples": 2,
        "temperature": 1.0,
        "top_p": 1.0,
        "max_gen_toks": 8,
        "k": [1],
        "score": ["judge"],
        "judge": {"model": {"path": str(models[1])}, "question": QUESTION},
    }


def first(judge, prompt, one, other):
    """P(1) of the question about two texts, asked alone and in float64."""
    text = QUESTION.replace("{prompt}", prompt).replace("{first}", one).replace("{second}", other)
    with torch.no_grad():
        logits = judge.double()(torch.tensor([WORDS(text)["input_ids"]])).logits[0, -1]
    return float(logits[WORDS.convert_tokens_to_ids(["1", "2"])].softmax(0)[0])


def test_a_reply_wins_by_the_mean_over_both_orders(command, models, task):
    status, result, rows = command(task)
    assert status == 0
    judge = language_model.load(language_model.locate(FolderModel(path=str(models[1]))))
    wins, flips = [], []
    for row, (prompt, reply) in zip(rows, ASKED, strict=True):
        for i, text in enumerate(row["completions"]):
            shown_first = first(judge, prompt, text.strip(), reply.strip())
            shown_second = 1 - first(judge, prompt, reply.strip(), text.strip())
            assert row["judge"][i] == pytest.approx((shown_first + shown_second) / 2, abs=1e-4)
            wins.append(row["judge"][i] > 0.5)
            flips.append((shown_first > 0.5) != (shown_second > 0.5))
    found = result["tasks"]["heldout"]["metrics"]
    assert found["win_rate"]["value"] == pytest.approx(sum(wins) / len(wins))
    assert found["order_flips"]["value"] == pytest.approx(sum(flips) / len(flips))
    assert "accuracy" not in found
    digest = language_model.locate(FolderModel(path=str(models[1]))).digest
    assert result["inputs"] == {"judge/heldout": digest}


def row(*texts):
    return {"question": "q", "answer": " own ", "item": 0, "completions": texts}


def judged_by(prefers, rows, task):
    """The rows, scored by a judge that gives P(1) = prefers(first, second)."""

    def answers(asked):
        pairs = [text.partition(": ")[2].removesuffix("? ").split(" or ") for text in asked]
        return [prefers(*pair) for pair in pairs], 0

    judged.score(parse({"tasks": {"heldout": task}})[0], rows, SimpleNamespace(answers=answers))
    return metrics.scores([one | {"tokens": []} for one in rows], (1,))


def test_a_judge_that_likes_the_first_place_alone_calls_it_even(task):
    found = judged_by(lambda one, other: 0.9, [row("a", "b"), row("c", "d")], task)
    assert found["win_rate"].tolist() == [0.5, 0.5]
    assert found["order_flips"].tolist() == [1.0, 1.0]


def test_a_judge_that_likes_a_text_has_it_win_in_either_place(task):
    found = judged_by(lambda one, other: 0.8 if one == "a" else 0.3, [row("a", "b")], task)
    assert found["win_rate"].tolist() == [0.75]  # b and the data set's are even
    assert found["order_flips"].tolist() == [0.5]


def test_pairs_of_the_hub_are_asked_and_compared_with_the_chosen(command, task, tmp_path):
    same = "\n\nHuman: 1 + 2\n\nAssistant:"
    lines = [json.dumps({"chosen": f"{same} 3. ", "rejected": f"{same} 4. "}) + "\n"]
    (tmp_path / "pairs.jsonl").write_text("".join(lines))
    pairs = {"file": str(tmp_path / "pairs.jsonl"), "chosen": "chosen", "rejected": "rejected"}
    status, _, rows = command({**task, "task": pairs, "template": "{question}", "items": 1})
    assert status == 0
    assert (rows[0]["question"], rows[0]["answer"]) == (same, " 3. ")


def test_a_row_without_a_reply_is_named(task):
    with pytest.raises(UserError, match="item 0 has no reply"):
        judged_by(lambda one, other: 0.5, [row("a") | {"answer": " "}], task)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"judge": None}, "judge: missing"),
        ({"score": ["proxy"]}, "score: missing or without judge"),
        (
            {"judge": {"model": {"path": "x"}, "question": "{prompt} {first}"}},
            "expected {second} exactly once",
        ),
        ({"task": {"file": "x.jsonl", "question": "q"}}, "task: a judge compares replies"),
        ({"task": {"world": "preferences"}}, "task: a judge compares replies"),
    ],
)
def test_what_does_not_go_together_is_refused(task, change, message):
    changed = {key: value for key, value in {**task, **change}.items() if value is not None}
    with pytest.raises(UserError, match=message):
        parse({"tasks": {"heldout": changed}})
