"""Data sets that users bring: of the Hub in the forms there are, and files of their own, by a task's keys."""

import json
import os

import datasets
import hub_datasets
import pytest
import reasoning_datasets
import typed
from data_set_files import write
from reasoning_datasets import PRM800K

from encore.data import demonstrations, hub, hub_preferences, prompts
from encore.data.forms import plain
from encore.errors import UserError
from encore.rewards.verifiers import verifier
from encore.worlds import Problem

MAKE = "Using the numbers {nums}, create an equation that equals {target}."
OF_COUNTDOWN = {"question": MAKE, "numbers": "nums", "target": "target", "verifier": "countdown"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The user's cache is left alone."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


def of_hub(name, split, folder, **keys):
    shape = (hub_datasets.DATASETS | reasoning_datasets.DATASETS)[name]
    place = {"hub": str(write(name, shape, folder)), "revision": "0" * 40, "split": split}
    return place | ({"subset": shape.subsets[0]} if shape.subsets else {}) | keys


def of_file(rows, folder, **keys):
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"file": str(path), **keys}


@pytest.mark.parametrize(
    ("name", "split", "keys", "completion"),
    [
        (
            "openai/gsm8k",
            "train",
            {"question": "question", "answer": "answer", "verifier": "math"},
            "She has 7 of them.\n#### 7",
        ),
        (
            "DigitalLearningGmbH/MATH-lighteval",
            "test",
            {"question": "problem", "answer": "solution", "verifier": "math"},
            r"It is $\boxed{4}$.",
        ),
        (
            "BytedTsinghua-SIA/DAPO-Math-17k",
            "train",
            {"question": "prompt", "answer": "reward_model.ground_truth", "verifier": "math"},
            r"<answer>4</answer>",
        ),
        (
            "math-ai/aime25",
            "test",
            {"question": "problem", "answer": "answer", "verifier": "math"},
            r"\boxed{4.0}",
        ),
        (
            "Jiayi-Pan/Countdown-Tasks-3to4",
            "train",
            OF_COUNTDOWN,
            "<think>44+19=63</think><answer>(44 + 19) + 35</answer>",
        ),
    ],
)
def test_problems_and_their_verifier(tmp_path, name, split, keys, completion):
    """The first row's right completion is right, that of the second wrong; each gold answer is right."""
    rows = hub.problems(typed.task(of_hub(name, split, tmp_path, **keys)))
    verify = verifier(keys["verifier"])
    first, second, *_ = (Problem(*row) for row in rows)
    assert verify(first, completion)
    assert not verify(second, completion)
    for one in (Problem(*row) for row in rows):
        assert verify(one, f"<think></think><answer>{one.answer}</answer>")


def test_a_question_is_made_of_several_columns(tmp_path):
    task = of_hub("Jiayi-Pan/Countdown-Tasks-3to4", "train", tmp_path, **OF_COUNTDOWN)
    questions, answers, _ = zip(*hub.problems(typed.task(task)), strict=True)
    assert questions[0] == "Using the numbers [44, 19, 35], create an equation that equals 98."
    assert answers[1] == "8/(3-8/3)"
    assert hub.questions(typed.task(task)) == [*questions]


def test_a_conversation_stands_for_its_request(tmp_path):
    keys = {"question": "prompt", "answer": "reward_model.ground_truth"}
    task = of_hub("BytedTsinghua-SIA/DAPO-Math-17k", "train", tmp_path, **keys)
    assert hub.problems(typed.task(task), 1) == [("What is 2+2?", "4", 0)]


def test_demonstrations_of_conversations(tmp_path):
    keys = {"prompt": "conversations", "completion": "conversations"}
    rows = demonstrations.of_task(
        typed.source({"task": of_hub("open-thoughts/OpenThoughts-114k", "train", tmp_path, **keys)}), 0
    )
    assert (rows[0]["prompt"], rows[0]["completion"]) == ("What is 2+2?", "<think>a</think> 4")
    keys = {"prompt": "prompt", "completion": "messages"}
    rows = demonstrations.of_task(
        typed.source({"task": of_hub("HuggingFaceH4/ultrachat_200k", "train_sft", tmp_path, **keys)}), 0
    )
    kept, skipped = demonstrations.usable(rows)
    assert [row["completion"] for row in kept] == ["With two needles.", "A little."]
    assert skipped == {"multi-turn": 1}


def test_what_a_row_lacks_is_no_text(tmp_path):
    task = of_file([{"q": "1", "a": None}, {"q": "2", "a": 2}], tmp_path, question="q", answer="a")
    assert hub.problems(typed.task(task)) == [("1", "", 0), ("2", "2", 0)]


def test_questions_of_prm800k(tmp_path):
    keys = {"question": "question.problem", "answer": "question.ground_truth_answer"}
    task = of_file([PRM800K], tmp_path, **keys)
    assert hub.problems(typed.task(task)) == [("What is 3+4?", "7", 0)]


def test_files_of_ones_own(tmp_path):
    """JSON lines and Parquet, for problems, demonstrations and preferences."""
    rows = [
        {"q": "1+1", "a": 2, "good": "two", "bad": "three"},
        {"q": "2+2", "a": 4, "good": "four", "bad": ""},
    ]
    task = of_file(rows, tmp_path, question="q", answer="a", verifier="math")
    assert hub.problems(typed.task(task)) == [("1+1", "2", 0), ("2+2", "4", 0)]
    assert prompts.of_task(typed.task(task), plain("<{question}>"), 1, 0)["prompt"][:] == ["<1+1>"]
    with pytest.raises(UserError, match=r"problems: 3 asked, but .*mine\.jsonl has 2"):
        prompts.of_task(typed.task(task), plain("{question}"), 3, 0)

    parquet = tmp_path / "mine.parquet"
    datasets.Dataset.from_list(rows).to_parquet(parquet)
    assert hub.problems(typed.task({**task, "file": str(parquet)})) == hub.problems(typed.task(task))

    shown = of_file(rows, tmp_path, prompt="{q} =", completion="good")
    assert demonstrations.of_task(typed.source({"task": shown}), 0)[0]["prompt"] == "1+1 ="
    ranked = of_file(rows, tmp_path, prompt="{q} =", chosen="good", rejected="bad")
    (first, _) = hub_preferences.of_task(typed.comparisons(ranked))
    assert (first["prompt"], first["responses"]) == ("1+1 =", ["two", "three"])


@pytest.mark.parametrize(
    ("rows", "keys", "says"),
    [
        ([{"q": "1", "a": "2"}], {"question": "p"}, r"task\.question: no column 'p' in .*mine\.jsonl"),
        ([{"q": "1", "a": "2"}], {"question": "{q} {b}"}, r"task\.question: no column 'b' in .*mine\.jsonl"),
        (
            [{"nums": "1, 1", "target": 2}],
            OF_COUNTDOWN,
            r"task\.numbers: row 0 of .*: expected whole numbers",
        ),
        ([], {"question": "q"}, r"task\.file: .*mine\.jsonl is empty"),
        (
            [{"nums": [1, 1], "target": 7}],
            OF_COUNTDOWN,
            r"task\.target: row 0 of .*: nothing makes 7 of \[1, 1\]",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path, rows, keys, says):
    with pytest.raises(UserError, match=says) as error:
        hub.problems(typed.task(of_file(rows, tmp_path, **keys)))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["{", '{"q": 1}\n{"q": \n', "\x00\xff"])
def test_a_file_that_is_no_json_is_one_line(tmp_path, text):
    path = tmp_path / "mine.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=r"task\.file: cannot read .*mine\.jsonl: ") as error:
        hub.problems(typed.task({"file": str(path), "question": "q"}))
    assert "\n" not in str(error.value)


def test_another_file_with_the_same_name_and_time_is_read_anew(tmp_path):
    """`datasets` keeps what it has read by path and time of change, which a copied file brings with it."""
    for answer in ("2", "3"):
        task = of_file([{"q": "1+1", "a": answer}], tmp_path, question="q", answer="a")
        os.utime(task["file"], ns=(10**18, 10**18))
        assert hub.problems(typed.task(task)) == [("1+1", answer, 0)]


def test_a_file_that_has_changed_since_it_was_planned_is_refused(tmp_path):
    task = of_file([{"q": "1"}], tmp_path, question="q")
    with pytest.raises(UserError, match=r"task\.file: .* has changed since this job was planned"):
        hub.problems(typed.task(task | {"sha256": "0" * 64}))
