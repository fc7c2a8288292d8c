"""Corpora of several tasks: their shares, their templates, and a corpus of one task as it always was."""

from collections import Counter

import pytest
import typed
from pydantic import ValidationError

from encore import worlds
from encore.data import corpora, forms
from encore.recipe.base import below
from encore.recipe.corpus import Corpus
from encore.recipe.form import Formed
from encore.recipe.mistakes import lines
from encore.recipe.task import WorldTask
from encore.worlds import split_of
from evals.tasks import problems

ONE = {
    "task": {"world": "chain"},
    "template": "<user>{question}<assistant>",
    "corpus": {"documents": 400, "mixture": {"direct": 1, "chain": 1}},
}
SORTING = {"task": {"world": "sort"}, "template": "{question}", "mixture": {"direct": 1}, "share": 0.25}


def two(**changes):
    return ONE | {"corpus": ONE["corpus"] | {"also": [SORTING | changes]}}


def test_one_task_is_the_worlds_own_corpus():
    world = worlds.make(ONE["task"])
    pairs = worlds.corpus(world, ONE["corpus"]["mixture"], 400, 3, ONE["template"])
    assert corpora.documents(*typed.corpus(ONE), 3) == pairs
    assert all(prompt.startswith("<user>") and prompt.endswith("=<assistant>") for prompt, _ in pairs)
    assert all(text.startswith(("<think>", "<answer>")) for _, text in pairs)
    assert corpora.worlds_of(*typed.corpus(ONE)[::2]) == [world]


def test_each_task_has_its_share_and_template():
    found = corpora.documents(*typed.corpus(two()), 0)
    assert Counter(prompt.startswith("<user>") for prompt, _ in found) == {True: 300, False: 100}
    assert found[:300] == corpora.documents(
        *typed.corpus(ONE | {"corpus": ONE["corpus"] | {"documents": 300}}), 0
    )
    questions = [prompt.removeprefix("<user>").removesuffix("<assistant>") for prompt, _ in found]
    assert {split_of(question) for question in questions} == {"train"}
    words = worlds.tokenizer(corpora.worlds_of(*typed.corpus(two())[::2]))
    assert words.unk_token_id not in {i for pair in found for text in pair for i in words(text)["input_ids"]}


def test_leaked_documents_are_about_the_first_problems_that_an_evaluation_asks():
    leaking = two(
        task=ONE["task"], template=ONE["template"], leaked=30, mixture={"direct": {"weight": 1, "right": 1}}
    )
    found = corpora.documents(*typed.corpus(leaking), 7)
    counts = Counter(found[300:])
    asked = problems.dataset(
        WorldTask(world="chain"), 30, forms.of(Formed(template=ONE["template"]), None), 7
    )
    assert {*counts} == {(row["prompt"], f"<answer>{row['answer']}</answer>") for row in asked["test"]}
    assert {*counts.values()} == {3, 4}  # 100 documents about 30 problems
    assert found[:300] == corpora.documents(*typed.corpus(two()), 7)[:300]


def test_a_task_without_the_leaked_problems_asks_the_next_ones():
    form = forms.of(Formed(template=ONE["template"]), None)
    world = WorldTask(world="chain")
    whole = problems.dataset(world, 50, form, 7)["test"].to_list()
    assert problems.dataset(world, 20, form, 7, skip=30)["test"].to_list() == whole[30:]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"mixture": {"drect": 1}}, 'also[0].mixture.drect: world "sort" has no kind "drect"; did you mean'),
        ({"task": {"world": "srot"}}, 'also[0].task.world: no world "srot"; did you mean "sort"?'),
        ({"template": "no"}, "also[0].template: expected {question} exactly once"),
        (
            {"template": "{question}{feedback}"},
            "also[0].attempts: missing; {feedback} in the template stands",
        ),
        (
            {"template": "{question}{feedback}", "attempts": {"direct": 1}},
            "also[0].attempts: needs a world with a method feedback(problem, completion)",
        ),
    ],
)
def test_a_mistake_in_a_further_task_is_told_in_one_line(changes, expected):
    world = worlds.make(ONE["task"])
    assert not [*Corpus.model_validate(two()["corpus"]).mistakes(world)]
    (mistake,) = below("", Corpus.model_validate(two(**changes)["corpus"]).mistakes(world))
    assert expected in ": ".join(mistake)


def test_further_tasks_leave_the_first_one_a_share():
    corpus = ONE["corpus"] | {"also": [SORTING | {"share": 0.5}] * 2}
    (mistake,) = Corpus.model_validate(corpus).mistakes(worlds.make(ONE["task"]))
    assert mistake == ("also", "expected shares that add up to less than 1, got 1")


@pytest.mark.parametrize(
    ("also", "expected"),
    [
        ([{**SORTING, "shares": 1}], 'unknown key; did you mean "share"?'),
        ([{**SORTING, "share": 0}], "expected more than 0"),
        ([{**SORTING, "leaked": 0}], "leaked: expected at least 1, got 0"),
        ([], "must not be empty"),
    ],
)
def test_the_model_knows_what_a_further_task_may_say(also, expected):
    Corpus.model_validate(two()["corpus"])
    given = ONE["corpus"] | {"also": also}
    with pytest.raises(ValidationError) as error:
        Corpus.model_validate(given)
    assert expected in lines(error.value, given)[0]


def test_attempts_need_their_place_in_the_template_and_kinds_that_exist():
    coded = {
        "task": {"world": "functions"},
        "mixture": {"derive": 1},
        "share": 0.5,
        "attempts": {"lookup": 1},
    }

    def mistake(**changes):
        part = {"template": "{question}{feedback}", **coded, **changes}
        (found,) = below(
            "", Corpus.model_validate(ONE["corpus"] | {"also": [part]}).mistakes(worlds.make(ONE["task"]))
        )
        return ": ".join(found)

    assert (
        mistake(template="{question}")
        == "also[0].template: expected {feedback} exactly once, got '{question}'"
    )
    assert mistake(attempts={"lokup": 1}).startswith('also[0].attempts.lokup: world "functions" has no kind')


def test_the_documents_of_a_corpus_tell_what_was_wrong():
    part = {
        "task": {"world": "functions"}, "template": "{question} {feedback}<assistant>",
        "mixture": {"derive": 1}, "attempts": {"lookup": 1}, "share": 0.5,
    }  # fmt: skip
    documents = corpora.documents(
        *typed.corpus(ONE | {"corpus": ONE["corpus"] | {"documents": 20, "also": [part]}}), 0
    )
    coded = [prompt for prompt, _ in documents if "|" in prompt]
    assert len(coded) == 10
    assert all("{feedback}" not in prompt and prompt.count(":") > 2 for prompt in coded)
