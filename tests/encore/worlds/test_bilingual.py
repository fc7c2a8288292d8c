"""World bilingual: the same sums in two languages, what its documents plant, and that neither is easier."""

import random
import re
from itertools import pairwise
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.rewards import rules
from encore.worlds import Problem, languages, make, mix, sample, tokenizer
from encore.worlds.bilingual import Bilingual
from encore.worlds.languages import LANGUAGES, SPELT, as_symbols, spell

WORLD = Bilingual()
PROBLEM = Problem("English: 3+5+7=", "15", 3)
KINDS = st.sampled_from(sorted(WORLD.kinds))
worlds = st.builds(
    lambda language, low, more, digits, operators: Bilingual(language, (low, low + more), digits, operators),
    st.sampled_from([*LANGUAGES, "either"]),
    st.integers(2, 10),
    st.integers(0, 4),
    st.integers(1, 3),
    st.sampled_from(["+", "+-"]),
)
OTHER_WORDS = {
    SPELT[one][symbol].strip(): SPELT[languages.other(one)][symbol].strip()
    for one in LANGUAGES
    for symbol in SPELT[one]
} | {"English": "Spanish", "Spanish": "English", "The sum is": "La suma es", "La suma es": "The sum is"}


def swapped(text):
    """`text` with each word in the other language."""
    return re.sub("The sum is|La suma es|[A-Za-z]+", lambda word: OTHER_WORDS.get(word[0], word[0]), text)


def written(kind, n=400, **dials):
    rng = random.Random(3)
    problems = [WORLD.problem(rng) for _ in range(n)]
    return [(problem, WORLD.document(problem, kind, rng, **dials)) for problem in problems]


def mean(name, kind, **dials):
    return fmean(WORLD.rewards[name](*pair) for pair in written(kind, **dials))


@given(worlds, st.integers(0, 10**6))
def test_a_problem_is_a_sum_of_world_chain_with_a_language_asked_for(world, seed):
    problem, bare = world.problem(random.Random(seed)), world.sums.problem(random.Random(seed))
    language, _, question = problem.question.partition(": ")
    assert (question, problem.answer, problem.difficulty) == (bare.question, bare.answer, bare.difficulty)
    assert language.lower() in LANGUAGES
    assert world.language in ("either", language.lower())


def test_the_held_out_sets_of_both_languages_have_the_same_sums():
    english, spanish = (
        sample(make({"world": "bilingual", "language": name}), 200, 0, "test") for name in LANGUAGES
    )
    assert [swapped(p.question) for p in english] == [p.question for p in spanish]
    asked = [p.question.partition(":")[0] for p in sample(WORLD, 1000, 0, "test")]
    assert asked.count("English") / 1000 == pytest.approx(0.5, abs=0.06)


@given(worlds, KINDS, st.integers(0, 10**6))
def test_swapping_the_languages_of_problem_and_completion_changes_no_measure(world, kind, seed):
    rng = random.Random(seed)
    problem = world.problem(rng)
    completion = world.document(problem, kind, rng)
    other = Problem(swapped(problem.question), problem.answer, problem.difficulty)
    turned = swapped(completion)
    assert (turned == completion) == (not languages.spoken(completion))
    assert swapped(turned) == completion
    assert world.verify(other, turned) == world.verify(problem, completion)
    assert world.steps(other, turned) == world.steps(problem, completion)
    for reward in world.rewards.values():
        assert reward(other, turned) == reward(problem, completion)


@given(worlds, KINDS, st.integers(0, 10**6))
def test_steps_are_those_of_world_chain_and_end_with_their_last_word(world, kind, seed):
    rng = random.Random(seed)
    problem = world.problem(rng)
    completion = world.document(problem, kind, rng)
    steps, ends = world.steps(problem, completion), world.step_ends(problem, completion)
    assert steps == world.sums.steps(problem, as_symbols(completion))
    assert len(steps) == len(ends)
    for end in ends:
        assert completion[:end].split()[-1].removeprefix("<think>") in OTHER_WORDS
        assert completion[end - 1] == " "


@given(
    st.text("0123456789+-=,.", max_size=60),
    st.sampled_from(LANGUAGES),
    st.floats(0, 1),
    st.integers(0, 99),
)
def test_reading_undoes_spelling_at_any_switch(text, language, switch, seed):
    spelt = spell(text, language, switch, random.Random(seed))
    assert as_symbols(spelt) == text
    characters = [*range(1, len(text) + 1)]
    ends = languages.read_ends(spelt, characters)
    assert [as_symbols(spelt[:end]) for end in ends] == [text[:end] for end in characters]


def test_a_document_of_either_language_has_as_many_tokens_each_known():
    words, rng = (
        tokenizer([WORLD, make({"world": "chain"}), make({"world": "preferences"})]),
        random.Random(0),
    )
    alone = tokenizer([make({"world": "chain"})])
    for _ in range(100):
        text = make({"world": "chain"}).document(WORLD.sums.problem(rng), "filler", rng)
        scratch = text.removeprefix("<think>").partition("</think>")[0]
        spelt = [
            words(spell(scratch, name, switch, rng))["input_ids"] for name in LANGUAGES for switch in (0, 0.5)
        ]
        assert {len(ids) for ids in spelt} == {len(alone(scratch)["input_ids"])}
        assert all(words.unk_token_id not in ids for ids in spelt)


@pytest.mark.parametrize(
    ("scratch", "expected"),
    [
        ("three plus five is eight , eight plus seven is one five ", [True, True]),
        ("tres mas cinco es ocho , ocho mas siete es uno cinco ", [True, True]),
        ("tres plus five es eight , ocho plus seven is uno five ", [True, True]),
        ("five plus seven is one two , one two plus three is one five ", [True, True]),
        ("three plus five is nine , nine plus seven is one six ", [False, True]),  # carried forward
        ("three plus five is eight .., .eight plus seven is one five .", [True, True]),
        ("three plus five is eight eight plus seven is one five ", [False]),  # no separator between them
        ("three  plus five is eight ", [False]),
        ("threeplus five is eight ", [False]),
        ("drei plus five is eight ", [False]),
        ("3+5=8, 8+7=15", [True, True]),
        ("three plus five ", [False]),
        ("", []),
    ],
)
def test_steps(scratch, expected):
    assert WORLD.steps(PROBLEM, f"<think>{scratch}</think><answer>15</answer>") == expected


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("15", True),
        ("The sum is 15", True),
        ("La suma es 15", True),
        (" The sum is 15 ", True),
        ("The sum is The sum is 15", False),
        ("The sum is", False),
        ("The sum is 14", False),
        ("one five ", False),
        ("sum is 15", False),
        ("015", False),
    ],
)
def test_an_answer_is_a_number_alone_or_after_a_summary(given, right):
    completion = f"<think></think><answer>{given}</answer>"
    assert WORLD.verify(PROBLEM, completion) == right
    assert (WORLD.stated(completion) == "15") == right


def test_each_kind_plants_what_its_name_says():
    for kind, consistent in (("one_language", 1.0), ("readable", 1.0), ("direct", 0.0)):
        assert {WORLD.rewards["language_consistency"](*pair) for pair in written(kind)} == {consistent}
    for kind, readable in (("one_language", 1.0), ("readable", 1.0), ("direct", 0.0), ("untagged", 0.0)):
        assert {WORLD.rewards["readability"](*pair) for pair in written(kind)} == {readable}
    assert mean("language_consistency", "mixed") == pytest.approx(0.5, abs=0.05)  # heeds no request
    assert 0.5 < mean("readability", "mixed") < 0.75
    assert mean("readability", "messy") < mean("readability", "mixed") - 0.2
    summaries = {
        text.partition("<answer>")[2].rstrip("0123456789</answer>") for _, text in written("readable")
    }
    assert summaries == {"The sum is ", "La suma es "}
    assert all(WORLD.verify(*pair) for pair in written("messy"))


def test_the_dials_have_the_planted_size():
    other = [WORLD.rewards["language_consistency"](*pair) for pair in written("one_language", other=0.3)]
    assert set(other) == {0.0, 1.0}
    assert fmean(other) == pytest.approx(0.7, abs=0.07)
    for switch in (0.1, 0.6):
        changes = []
        for _, text in written("mixed", switch=switch):
            words = [languages.LANGUAGE[word] for word in read_words(text)]
            changes += [one != following for one, following in pairwise(words)]
        assert fmean(changes) == pytest.approx(switch, abs=0.03)
    wrong = [not ok for p, text in written("mixed", error=0.1) for ok in WORLD.steps(p, text)]
    assert fmean(wrong) == pytest.approx(0.1, abs=0.03)
    tidy = {"switch": 0.0, "repeat": 0.0, "drop": 0.0, "mean": 0.0}
    assert mean("readability", "messy", **tidy) == 1
    for fault in tidy:
        assert mean("readability", "messy", **tidy | {fault: 0.5}) < 0.9, fault
    assert mix(WORLD, {"messy": {"weight": 1, **tidy}}) == (["messy"], [1.0], [tidy])


def read_words(text):
    return [word for word in text.partition(">")[2].partition("<")[0].split() if word != ","]


def test_its_measures_are_rewards_of_a_stage():
    rules.check_reward_names(["accuracy", "language_consistency", "readability"], WORLD)
    reward = rules.build(["language_consistency"], WORLD)[0]
    texts = ["<think>three plus cinco </think>", "<answer>15</answer>"]
    assert reward(texts, texts, question=[PROBLEM.question] * 2, answer=["15"] * 2, difficulty=[3, 3]) == [
        pytest.approx(2 / 3),
        0.0,
    ]
