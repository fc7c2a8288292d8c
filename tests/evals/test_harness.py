"""lm-eval with our tasks: prompts, scoring of every sample, and completions that try to break it."""

import json

import pytest
from evaluated import parse
from scripted import TEMPLATE, Scripted

from encore.errors import UserError
from encore.worlds import make, prompt, sample, split_of
from evals import benchmarks, harness


def task_of(spec):
    return parse({"tasks": {"heldout": spec}})[0]


def gold(heldout):
    problems = sample(make(heldout["task"]), heldout["items"], seed=0, split="test")
    return {prompt(heldout["template"], problem.question): problem.answer for problem in problems}


@pytest.mark.parametrize("template", [TEMPLATE, "{question}\n", "Q: {question} {{x}} {% if %}\n\nA: "])
def test_prompts_are_the_training_prompts_of_held_out_questions(heldout, template):
    asked = []
    lm = Scripted(lambda text, n: asked.append(text) or "")
    rows = harness.sample(task_of({**heldout, "template": template}), lm, seed=0)
    assert asked == [prompt(template, row["question"]) for row in rows for _ in range(heldout["samples"])]
    assert {split_of(row["question"]) for row in rows} == {"test"}
    assert len({row["question"] for row in rows}) == heldout["items"]


def test_every_sample_is_scored_by_the_worlds_verifier(heldout):
    answers = gold(heldout)

    def say(text, n):  # every third completion is right
        return f"<think>.</think><answer>{answers[text] if n % 3 == 0 else '-999'}</answer>"

    rows = harness.sample(task_of(heldout), Scripted(say), seed=0)
    for row in rows:
        assert row["correct"] == [True, False, False, True, False, False, True, False]
        assert row["votes"] == [row["answer"] if right else "-999" for right in row["correct"]]
        assert row["formatted"] == [True] * 8
        assert row["answer"] == answers[prompt(TEMPLATE, row["question"])]
        assert all(len(row[key]) == 8 for key in ("completions", "tokens", "truncated"))


def test_a_template_that_begins_the_answer_counts_for_its_format(heldout):
    lm = Scripted(lambda text, n: "1+1=2</think><answer>2</answer>")
    begun = harness.sample(task_of({**heldout, "template": TEMPLATE + "<think>"}), lm, seed=0)
    assert all(all(row["formatted"]) for row in begun)
    assert not any(any(row["formatted"]) for row in harness.sample(task_of(heldout), lm, seed=0))


def test_a_world_is_asked_other_problems_by_each_seed_and_every_model_of_a_seed_the_same(heldout):
    right, wrong = (Scripted(lambda text, n, said=said: said) for said in ("<answer>1</answer>", ""))
    asked = {
        (seed, lm): [row["question"] for row in harness.sample(task_of(heldout), lm, seed)]
        for seed in (0, 1)
        for lm in (right, wrong)
    }
    assert asked[0, right] == asked[0, wrong]
    assert asked[1, right] == asked[1, wrong]
    assert asked[0, right] != asked[1, right]


def test_a_data_set_is_the_same_for_all_seeds(arithmetic):
    lm = Scripted(lambda text, n: "1")
    asked = [harness.sample(lm_eval_task(), lm, seed, arithmetic) for seed in (0, 1)]
    assert [row["question"] for row in asked[0]] == [row["question"] for row in asked[1]]


HOSTILE = [
    "",
    "1" * 1_000_000,
    "<answer>" * 100_000,
    "<think>" * 1000 + "</think>" * 1000,
    "\ud800\udfff<answer>\udc80</answer>",
    r"\boxed{" * 10_000,
    r"\boxed{unclosed",
    "<answer>" + "9" * 500_000 + "</answer>",
]


def test_hostile_completions_are_wrong_and_harmless(heldout):
    rows = harness.sample(task_of(heldout), Scripted(lambda text, n: HOSTILE[n]), seed=0)
    assert not any(any(row["correct"]) or any(row["formatted"]) for row in rows)


def test_more_items_than_the_world_has(heldout):
    few = {**heldout, "task": {"world": "chain", "terms": [2, 2], "digits": 1}, "items": 5000}
    with pytest.raises(UserError, match=r"evals\.tasks\.heldout: task: 5000 distinct test questions asked"):
        benchmarks.load(task_of(few), seed=0)


def test_the_items_after_those_that_are_left_out(heldout):
    rows, rest = (
        harness.sample(task_of({**heldout, "items": 4, **skip}), Scripted(lambda text, n: ""), seed=0)
        for skip in ({"items": 6}, {"skip": 2})
    )
    assert [row["question"] for row in rest] == [row["question"] for row in rows[2:]]


def test_an_unknown_dial(heldout):
    with pytest.raises(UserError, match="did you mean"):
        benchmarks.load(task_of({**heldout, "task": {"world": "chain", "term": [2, 3]}}), seed=0)


def lm_eval_task(**changes):
    spec = {
        "lm_eval": "arithmetic",
        "samples": 3,
        "temperature": 0.7,
        "top_p": 0.95,
        "max_gen_toks": 32,
        "k": [1],
    }
    return task_of({**spec, **changes})


def test_a_task_of_lm_eval_keeps_its_own_scoring(arithmetic):
    said = ["the sum is {}", "no idea", "99"]
    lm = Scripted(lambda text, n: said[n].format(int(text[0]) + 1))
    rows = harness.sample(lm_eval_task(), lm, seed=0, folder=arithmetic)
    assert [row["correct"] for row in rows] == [[True, False, False]] * 4
    assert [row["votes"] for row in rows] == [[str(i + 1), None, "99"] for i in range(4)]
    assert [row["question"] for row in rows] == [f"{i}+1=" for i in range(4)]
    assert rows[0]["answer"] == "1"


def test_a_task_of_lm_eval_gets_our_decoding_and_keeps_its_stop_strings(arithmetic):
    loaded = benchmarks.load(lm_eval_task(), 0, arithmetic).task
    assert loaded.get_config("generation_kwargs") == {
        "until": ["\n"],
        "do_sample": True,
        "temperature": 0.7,
        "top_p": 0.95,
        "top_k": 0,
        "max_gen_toks": 32,
    }
    assert loaded.get_config("repeats") == 3


def test_items_of_a_task_of_lm_eval(arithmetic):
    lm = Scripted(lambda text, n: "1")
    assert len(harness.sample(lm_eval_task(items=2), lm, seed=0, folder=arithmetic)) == 2
    with pytest.raises(UserError, match=r"evals\.tasks\.heldout\.items: 9 asked for, but arithmetic has 4"):
        harness.sample(lm_eval_task(items=9), lm, seed=0, folder=arithmetic)


def test_votes():
    assert harness.vote("<think>1</think><answer> 12 </answer>", is_answer=False) == "12"
    assert harness.vote(r"so \boxed{\frac{1}{2}}.", is_answer=False) == r"\frac{1}{2}"
    assert harness.vote("nothing", is_answer=False) is None
    assert harness.vote("7", is_answer=True) == "7"
    assert harness.vote("[invalid]", is_answer=True) is None


def test_a_hub_dataset_is_scored_by_math_verify(tmp_path, monkeypatch):
    """A local folder has the layout of a Hub dataset."""
    monkeypatch.chdir(tmp_path.parent)
    rows = [{"problem": f"What is {n}/2?", "solution": rf"\boxed{{\frac{{{n}}}{{2}}}}"} for n in (1, 3, 5)]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    spec = {
        "task": {
            "hub": tmp_path.name,
            "revision": "0" * 40,
            "split": "test",
            "question": "problem",
            "answer": "solution",
            "verifier": "math",
        },
        "template": "User: {question} Assistant:",
        **{"items": 2, "samples": 3, "temperature": 1.0, "top_p": 1.0, "max_gen_toks": 8, "k": [1]},
    }
    said = {
        "1": ["<answer>0.5</answer>", r"\boxed{\frac12}", "0.5"],
        "3": ["no", r"\boxed{2}", r"\boxed{1.5}"],
    }
    lm = Scripted(lambda text, n: said[text.split("What is ")[1][0]][n])
    found = harness.sample(task_of(spec), lm, seed=0)
    assert [row["correct"] for row in found] == [[True, True, False], [False, False, True]]
    assert [row["difficulty"] for row in found] == [None, None]
    with pytest.raises(UserError, match="9 asked, but"):
        benchmarks.load(task_of({**spec, "items": 9}), seed=0)


def test_prompts_of_the_hub_that_nothing_verifies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path.parent)
    (tmp_path / "test.jsonl").write_text(json.dumps({"post": "A long post. TL;DR:"}) + "\n")
    spec = {
        "task": {"hub": tmp_path.name, "revision": "0" * 40, "split": "test", "question": "post"},
        "template": "{question}",
        **{"items": 1, "samples": 2, "temperature": 1.0, "top_p": 1.0, "max_gen_toks": 8, "k": [1]},
        "score": ["kl"],
    }
    [row] = harness.sample(task_of(spec), Scripted(lambda text, n: ["short", ""][n]), seed=0)
    assert row["question"] == "A long post. TL;DR:"
    assert row["completions"] == ["short", ""]
    assert row["correct"] == [None, None]
    assert row["answer"] == ""
    json.dumps(row, allow_nan=False)
