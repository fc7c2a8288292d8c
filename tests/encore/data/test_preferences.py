"""Preferences come back as saved; what cannot be learnt from is counted; what is wrong is one line."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import typed
from hypothesis import given, settings
from hypothesis import strategies as st
from stage_runs import finished

from encore.data import demonstrations, hub_preferences, preferences
from encore.errors import UserError


def row(responses: Any = "abc", scores: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    """A row of these responses, each worse than the one before unless `scores` say otherwise."""
    given = scores or [float(-i) for i in range(len(responses))]
    return {
        "prompt": "p",
        "question": "q",
        "answer": "a",
        "difficulty": 0,
        "responses": [*responses],
        "truncated": [False] * len(responses),
        "scores": given,
        "ranking": preferences.by_score(given),
        "split": "train",
        **more,
    }


def product(folder: Path, lines: list[Any], file: str = preferences.FILE) -> Path:
    """The metrics.json of a stage whose product holds `lines`."""
    final = folder / "final"
    final.mkdir()
    (final / file).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return finished(folder)


def test_rows_come_back_as_they_were(tmp_path: Path):
    rows = [row(), row(["é\n", "\u2028"], split="validation")]
    preferences.save(rows, tmp_path / "final")
    found = finished(tmp_path)
    assert preferences.load(found) == rows
    assert preferences.load(found, "validation") == rows[1:]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"scores": None}, "no column 'scores'; valid: "),
        ({"scores": [1.0]}, "row 2: 3 responses and 1 scores"),
        (
            {"ranking": [0, 1, 1]},
            r"row 2: ranking: expected the indices 0 to 2 in some order, got \[0, 1, 1\]",
        ),
        ({"ranking": [2, 1, 0]}, "row 2: its ranking is not that of its scores"),
        ({"split": "valid"}, 'row 2: split: no split "valid"; did you mean "validation"?'),
        ({"responses": [1, 2, 3]}, "row 2: responses: expected texts"),
    ],
)
def test_a_wrong_row_is_one_line(tmp_path: Path, change, says):
    wrong = {key: value for key, value in (row() | change).items() if value is not None}
    with pytest.raises(UserError, match=says) as error:
        preferences.load(product(tmp_path, [row(), wrong]))
    assert "\n" not in str(error.value)


def test_other_products_are_refused(tmp_path: Path):
    metrics = product(tmp_path, [row()], demonstrations.FILE)
    with pytest.raises(UserError, match="its stage has made no preferences: there is no"):
        preferences.load(metrics)


def test_what_cannot_be_learnt_from_is_counted():
    rows = [
        row("abc"),
        row(["a", " ", "b", "a"], [3.0, 9.0, 2.0, 1.0]),  # an empty response, a pair of equal ones
        row("ab", [math.nan, 1.0]),
        row("ab", [None, 1.0]),
        row("aa", [1.0, 0.0]),
        row("ab", [1.0, 1.0]),
    ]
    kept, counts = preferences.usable(rows)
    assert counts == {"empty": 1, "nan": 2, "equal": 2, "tie": 1, "rows": 4}
    assert [one["responses"] for one in kept] == [["a", "b", "c"], ["a", "b", "a"]]
    assert kept[1]["scores"] == [3.0, 2.0, 1.0]
    assert kept[1]["ranking"] == [0, 1, 2]
    assert preferences.metrics(counts)["skipped/nan"] == 2
    some, many = preferences.checks(kept, counts)
    assert some["ok"]
    assert not many["ok"]
    assert "4 of 6 prompts have no pair left" in many["message"]
    assert not preferences.checks([], counts)[0]["ok"]
    assert all(check["ok"] for check in preferences.checks(*preferences.usable(rows[:1])))


texts = st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=2, max_size=6)
values = st.sampled_from([0.0, 1.0, 2.0, math.nan])


@settings(max_examples=50)
@given(texts, st.data(), st.integers(0, 3))
def test_pairs_are_of_the_ranking(responses, data, seed):
    scores = [data.draw(values) for _ in responses]
    kept, counts = preferences.usable([row(responses, scores)])
    found = preferences.pairs(kept, "all", seed)
    possible = math.comb(len(responses) - counts["empty"] - counts["nan"], 2)
    assert len(found) == possible - counts["equal"] - counts["tie"]
    assert bool(found) == (counts["rows"] == 0)
    for pair in found:
        assert pair["chosen"] != pair["rejected"]
        assert pair["margin"] > 0
        assert "" not in (pair["chosen"], pair["rejected"])
    one = preferences.pairs(kept, "one", seed)
    assert one == preferences.pairs(kept, "one", seed)
    assert len(one) == min(1, len(found))
    assert all(pair in found for pair in one)
    apart = preferences.pairs(kept, "best_worst", seed)
    assert [pair["margin"] for pair in apart] == sorted(pair["margin"] for pair in found)[
        len(found) - len(one) :
    ]


def test_pairs_keep_their_row_and_their_ends():
    (pair,) = preferences.pairs([row("ab", [0.0, 2.5], truncated=[True, False])])
    assert pair == {
        "prompt": "p",
        "chosen": "b",
        "rejected": "a",
        "margin": 2.5,
        "row": 0,
        "chosen_truncated": False,
        "rejected_truncated": True,
    }
    with pytest.raises(UserError, match=r"pairs: no choice .best.; did you mean .best_worst."):
        preferences.pairs([row()], "best")


def test_the_split_is_a_share_of_the_prompts():
    found = [preferences.split_of_prompt(str(i), 0.1) for i in range(2000)]
    assert 150 < found.count("validation") < 250
    assert {preferences.split_of_prompt(str(i), 0.0) for i in range(99)} == {"train"}
    wider = [preferences.split_of_prompt(str(i), 0.3) for i in range(2000)]
    assert all(b == "validation" for a, b in zip(found, wider, strict=True) if a == "validation")


HH = "\n\nHuman: Hi.\n\nAssistant: Hello.\n\nHuman: Why?\n\nAssistant:"
USER, REPLY = {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}
NO = {"role": "assistant", "content": "No."}


@pytest.mark.parametrize(
    ("line", "prompt", "responses"),
    [
        (
            {"prompt": "POST: x\n\nTL;DR:", "chosen": " So.", "rejected": " No."},
            "POST: x\n\nTL;DR:",
            [" So.", " No."],
        ),
        ({"chosen": HH + " So.", "rejected": HH + " Say no."}, HH, [" So.", " Say no."]),
        ({"prompt": [USER], "chosen": [REPLY], "rejected": [NO]}, "\n\nHuman: Why?", ["So.", "No."]),
        ({"chosen": [USER, REPLY], "rejected": [USER, NO]}, "\n\nHuman: Why?\n\nAssistant:", ["So.", "No."]),
        ({"prompt": "Why?", "chosen": [USER, REPLY], "rejected": [USER, NO]}, "Why?", ["So.", "No."]),
    ],
)
def test_comparisons_of_the_hub(tmp_path: Path, line, prompt, responses):
    (tmp_path / "train.jsonl").write_text(json.dumps(line) + "\n")
    task = {"hub": str(tmp_path), "revision": "0" * 40, "split": "train"} | {key: key for key in line}
    (found,) = hub_preferences.of_task(typed.comparisons(task))
    assert (found["prompt"], found["responses"]) == (prompt, responses)
    assert preferences.pairs([found])[0]["chosen"] == responses[0]
    if "prompt" in line:
        with pytest.raises(UserError, match=r"task.rejected: no column 'lost'"):
            hub_preferences.of_task(typed.comparisons(task | {"rejected": "lost"}))


def test_texts_that_share_no_dialogue(tmp_path: Path):
    (tmp_path / "train.jsonl").write_text(json.dumps({"chosen": "a", "rejected": "b"}) + "\n")
    task = {
        "hub": str(tmp_path),
        "revision": "",
        "split": "train",
        "chosen": "chosen",
        "rejected": "rejected",
    }
    with pytest.raises(
        UserError, match=r"task.prompt: missing, and in row 0 of .* do not begin with the same"
    ):
        hub_preferences.of_task(typed.comparisons(task))
