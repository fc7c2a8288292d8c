"""A base model by its candidate templates: each is asked, the best one's numbers are the task's."""

import json

import pytest
from evaluated import parse
from scripted import TEMPLATE, Scripted

from encore.errors import UserError
from encore.worlds import make, prompt, sample
from evals import harness, metrics, templates

POSTS = {"hub": "a/b", "revision": "a" * 40, "split": "test", "question": "q"}
OTHERS = {"bare": "{question}", "long": "Q: {question}\nA: "}


def task_of(spec):
    return parse({"tasks": {"heldout": spec}})[0]


def scripted(heldout, rates):
    """A model that is right in the first so many of eight samples of a problem, by template."""
    problems = sample(make(heldout["task"]), heldout["items"], seed=0, split="test")
    answers = {
        prompt(template, problem.question): (problem.answer, rate)
        for problem in problems
        for template, rate in rates.items()
    }

    def say(text, n):
        answer, rate = answers[text]
        return f"<answer>{answer if n % 8 < rate else '-999'}</answer>"

    return Scripted(say)


def measured(spec, lm):
    return templates.measure(task_of(spec), lambda one: harness.sample(one, lm, seed=0))


def test_a_task_without_candidates_is_asked_once_under_its_name(heldout):
    assert list(templates.candidates(task_of(heldout)).values()) == [task_of(heldout)]
    result, rows = measured(heldout, scripted(heldout, {TEMPLATE: 3}))
    assert result == metrics.summary(rows, (1, 4, 8))
    assert {row["task"] for row in rows} == {"heldout"}


def test_the_numbers_are_the_best_ones_and_all_are_kept(heldout):
    rates = {TEMPLATE: 1, OTHERS["bare"]: 6, OTHERS["long"]: 4}
    result, rows = measured(heldout | {"templates": OTHERS}, scripted(heldout, rates))
    assert result["template"] == "bare"
    assert result["metrics"]["accuracy"]["value"] == 6 / 8
    found = {name: one["metrics"]["accuracy"]["value"] for name, one in result["templates"].items()}
    assert found == {"own": 1 / 8, "bare": 6 / 8, "long": 4 / 8}
    right = {}
    for row in rows:
        right.setdefault(row["task"], []).append(sum(row["correct"]))
    assert right == {"heldout@own": [1] * 6, "heldout": [6] * 6, "heldout@long": [4] * 6}


def test_of_equals_the_tasks_own_template_stands(heldout):
    rates = dict.fromkeys((TEMPLATE, *OTHERS.values()), 5)
    result, _ = measured(heldout | {"templates": OTHERS}, scripted(heldout, rates))
    assert result["template"] == "own"


def test_a_candidate_takes_the_place_of_a_chat(heldout):
    spec = {key: value for key, value in heldout.items() if key != "template"} | {"chat": True}
    by_name = templates.candidates(task_of(spec | {"templates": {"bare": "{question}"}}))
    assert [(one.template, one.chat) for one in by_name.values()] == [(None, True), ("{question}", None)]


def test_the_own_templates_completions_are_those_without_candidates(heldout):
    lm = scripted(heldout, {TEMPLATE: 7, OTHERS["bare"]: 1})
    alone, rows = measured(heldout, lm)
    result, among = measured(heldout | {"templates": {"bare": "{question}"}}, lm)
    assert result["template"] == "own"
    assert {key: result[key] for key in alone} == alone
    assert json.dumps([row for row in among if row["task"] == "heldout"]) == json.dumps(rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"templates": {"bare": "no question"}},
            "templates.bare: expected {question} exactly once, got 'no question'",
        ),
        (
            {"templates": {"own": "{question}"}},
            "templates.own: that is the task's own template; call this one some",
        ),
        ({"templates": {}}, "templates: must not be empty"),
        (
            {"task": POSTS, "score": ["proxy"], "templates": OTHERS},
            "templates: nothing verifies the answers, so none of them is the best; leave it out",
        ),
    ],
)
def test_mistakes(heldout, changes, message):
    with pytest.raises(UserError) as error:
        parse({"tasks": {"heldout": heldout | changes}})
    assert str(error.value).startswith(f"evals.tasks.heldout.{message}")
