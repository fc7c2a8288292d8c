"""What every world must do, whatever its task."""

import random
import shutil
import time
from collections import Counter

import pytest

from encore.errors import UserError
from encore.worlds import STATEFUL, WORLDS, corpus, make, mix, sample, split_of

TEMPLATE = "<user>{question}<assistant>"
sandboxed = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")
NAMES = [pytest.param(name, marks=sandboxed) if name == "functions" else name for name in WORLDS]
worlds = pytest.mark.parametrize("name", NAMES)
FREE_FORM = ("preferences", "refusals")
in_tags = pytest.mark.parametrize("name", [name for name in NAMES if name not in (*FREE_FORM, *STATEFUL)])
ALWAYS_RIGHT = {
    "chain",
    "filler",
    "recheck",
    "repaired",
    "pairwise",
    "grouped",
    "solve",
    "search",
    "selection",
    "derive",
}
ALWAYS_RIGHT |= {"one_language", "mixed", "readable", "recited"}
SOUND = ALWAYS_RIGHT | {"truncated", "untagged"}


def documents(name, kind, n=200, **dials):
    """(world, problem, completion) triples of a kind."""
    world, rng = make({"world": name}), random.Random(1)
    problems = [world.problem(rng) for _ in range(n)]
    return [(world, problem, world.document(problem, kind, rng, **dials)) for problem in problems]


@worlds
def test_gold_answers_verify_and_nothing_else_by_accident(name):
    world = make({"world": name})
    problems = sample(world, 100, 0, "train")
    for problem, other in zip(problems, problems[1:] + problems[:1], strict=True):
        alone = name not in STATEFUL or name == "bandit_arms"  # whether no call must have led to the answer
        assert world.verify(problem, f"<think></think><answer>{problem.answer}</answer>") == alone
        assert world.verify(problem, f"<answer> {problem.answer} </answer>") == alone
        for garbage in (
            "",
            problem.answer,
            f"<answer>{problem.answer}",
            f"\\boxed{{{problem.answer}}}",
            "\ud800",
        ):
            assert not world.verify(problem, garbage)
        if other.answer != problem.answer:
            assert not world.verify(problem, f"<answer>{other.answer}</answer>")


@in_tags
def test_each_kind_of_document_is_what_its_name_says(name):
    for kind in make({"world": name}).kinds:
        for world, problem, completion in documents(name, kind):
            steps = world.steps(problem, completion)
            if kind in ALWAYS_RIGHT and not (name == "countdown" and kind == "filler"):
                assert world.verify(problem, completion), (kind, problem, completion)
            if kind in SOUND:
                assert all(steps), (kind, problem, completion)
            if kind in SOUND and not (name == "countdown" and kind == "filler"):
                assert steps
            if kind.endswith("_error"):
                assert steps.count(False) == 1, (kind, problem, completion)
                assert not world.verify(problem, completion)
            if kind in ("direct", "untagged"):
                assert "<think>" not in completion
            if kind == "untagged":
                assert not world.verify(problem, completion)


@in_tags
def test_the_share_of_right_guesses_is_planted(name):
    n = 300 if name == "functions" else 1000  # where each is a process
    for share in (0.0, 0.4, 1.0):
        right = [w.verify(p, c) for w, p, c in documents(name, "direct", n=n, right=share)]
        tolerance = 0.05 if 0 < share < 1 else 0  # a guess that is not right is wrong, never right by luck
        assert sum(right) / len(right) == pytest.approx(share, abs=tolerance)


@worlds
def test_every_text_of_a_world_is_in_its_vocabulary(name):
    world = make({"world": name})
    for kind in world.kinds:
        for _, problem, completion in documents(name, kind, n=50):
            rest = problem.question + problem.answer + completion
            for token in sorted(world.vocabulary, key=len, reverse=True):
                rest = rest.replace(token, "")
            assert rest == ""


@worlds
def test_samples_are_distinct_deterministic_and_split(name):
    world = make({"world": name})
    train, test = (sample(world, 150, 0, split) for split in ("train", "test"))
    for problems, split in ((train, "train"), (test, "test")):
        questions = [problem.question for problem in problems]
        assert len(set(questions)) == 150
        assert {split_of(question) for question in questions} == {split}
        assert sample(make({"world": name}), 150, 0, split) == problems
        assert sample(world, 40, 0, split) == problems[:40]
        assert sample(world, 150, 1, split) != problems
    assert not {p.question for p in train} & {p.question for p in test}


@worlds
def test_no_held_out_problem_of_any_seed_is_a_training_problem_of_any(name):
    """The split is by the question: base, training and held-out problems of all seeds stay apart."""
    world = make({"world": name})
    train, test = (
        [frozenset(problem.question for problem in sample(world, 60, seed, split)) for seed in range(21)]
        for split in ("train", "test")
    )
    assert not frozenset.union(*train) & frozenset.union(*test)
    assert len(set(test)) == 21


def test_a_sum_is_in_one_split_whatever_language_is_asked_for():
    sums = [f"{a}+{b}+3=" for a in range(10) for b in range(10)]
    for split in ("train", "test"):
        for language in ("English", "Spanish"):
            assert [s for s in sums if split_of(f"{language}: {s}") == split] == [
                s for s in sums if split_of(s) == split
            ]


def test_one_question_in_eight_is_a_test_question():
    share = Counter(split_of(f"{a}+{b}=") for a in range(100) for b in range(100))["test"] / 10_000
    assert share == pytest.approx(1 / 8, abs=0.015)


@in_tags
def test_a_corpus_is_deterministic_follows_its_weights_and_has_no_test_question(name):
    world = make({"world": name})
    mixture = {"direct": 3, "untagged": {"weight": 1}}
    pairs = corpus(world, mixture, 1000, 0, TEMPLATE)
    assert pairs == corpus(world, mixture, 1000, 0, TEMPLATE) != corpus(world, mixture, 1000, 1, TEMPLATE)
    asked = [text.removeprefix("<user>").removesuffix("<assistant>") for text, _ in pairs]
    assert {split_of(question) for question in asked} == {"train"}
    assert sum("<answer>" in text for _, text in pairs) / 1000 == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ({"world": "chian"}, 'no world "chian"; did you mean "chain"?'),
        ({}, "no world"),
        ({"world": ["chain"]}, "no world"),
        ({"world": "chain", "term": [2, 3]}, 'no dial "term"; did you mean "terms"?'),
        ({"world": "chain", "terms": 5}, "terms: expected 2 integers in a list, got 5"),
        ({"world": "chain", "terms": [2.0, 3.0]}, "terms: expected 2 integers"),
        ({"world": "chain", "terms": [5, 3]}, "terms: expected 2 <= fewest <= most"),
        ({"world": "chain", "digits": "1"}, "digits: expected an integer"),
        ({"world": "chain", "digits": True}, "digits: expected an integer"),
        ({"world": "chain", "digits": 0}, "digits: expected 1 to 6"),
        ({"world": "chain", "operators": "*"}, 'operators: expected "+" or "+-"'),
        ({"world": "chain", "terms": [2, 3], "weights": [1]}, "weights: expected 2 numbers"),
        ({"world": "chain", "terms": [2, 3], "weights": [0, 0]}, "weights: expected 2 numbers"),
        ({"world": "countdown", "numbers": [1, 3]}, "numbers: expected 2 <="),
        ({"world": "countdown", "target": [9, 3]}, "target: expected 0 <="),
        ({"world": "countdown", "largest": 0}, "largest: expected 2"),
        ({"world": "countdown", "operators": "+"}, 'operators: expected "+-" or "+-*", got "+"'),
        (
            {"world": "bilingual", "language": "german"},
            'language: expected one of "english", "spanish", "either"',
        ),
        ({"world": "bilingual", "terms": [5, 3]}, "terms: expected 2 <= fewest <= most"),
        ({"world": "functions", "operations": [0, 3]}, "operations: expected 1 <="),
        ({"world": "functions", "shown": 11}, "shown: expected 1 to 10"),
        ({"world": "modular", "terms": [2, 3]}, "terms: expected 3 <= fewest <= most"),
        ({"world": "modular", "modulus": 2}, "modulus: expected 3 to 1000, got 2"),
        ({"world": "sort", "numbers": [3, 11]}, "largest: 11 different numbers do not fit"),
        ({"world": "sort", "numbers": [3, 30]}, "numbers: expected 2 <="),
    ],
)
def test_a_wrong_task_is_told_in_one_line(task, expected):
    with pytest.raises(UserError) as error:
        make(task)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("mixture", "expected"),
    [
        ({}, "at least one kind"),
        ({"chain": 0}, "at least one kind"),
        ({"chian": 1}, 'mixture.chian: world "chain" has no kind "chian"; did you mean "chain"?'),
        ({"chain": -1}, "mixture.chain.weight: expected a number from 0"),
        ({"chain": "1"}, "mixture.chain.weight: expected a number from 0"),
        ({"chain": float("nan")}, "mixture.chain.weight"),
        ({"chain": {"error": 0.1}}, "mixture.chain: weight is missing"),
        ({"chain": {"weight": 1, "eror": 0.1}}, 'no dial "eror"; did you mean "error"?'),
        ({"chain": {"weight": 1, "switch": 0.1}}, 'no dial "switch"'),
        ({"chain": {"weight": 1, "error": 2}}, "mixture.chain.error: expected a number from 0 to 1, got 2"),
        ({"filler": {"weight": 1, "mean": 1000}}, "mixture.filler.mean: expected a number from 0 to 100"),
    ],
)
def test_a_wrong_mixture_is_told_in_one_line(mixture, expected):
    with pytest.raises(UserError) as error:
        mix(make({"world": "chain"}), mixture)
    assert expected in str(error.value)


def test_the_dials_of_a_kind_reach_its_documents():
    world = make({"world": "countdown"})
    pairs = corpus(world, {"search": {"weight": 1, "tries": 5, "right": 0.5}}, 500, 0, TEMPLATE)
    assert sum(text.count("no") for _, text in pairs) / 500 > 4
    assert mix(world, {"search": 2}) == (["search"], [2.0], [{}])


@pytest.mark.parametrize(
    ("task", "split", "exist"),
    [
        ({"world": "chain", "terms": [2, 2]}, "train", 100),
        ({"world": "chain", "terms": [2, 2]}, "test", 100),
        ({"world": "sort", "numbers": [3, 3], "largest": 5}, "train", 120),
    ],
)
def test_too_many_questions_asked_names_how_many_there_are(task, split, exist):
    world = make(task)
    rng = random.Random(0)
    every = {world.problem(rng).question for _ in range(20_000)}
    assert len(every) == exist
    count = sum(split_of(question) == split for question in every)
    assert len(sample(world, count, 0, split)) == count
    with pytest.raises(
        UserError, match=f"{count + 1} distinct {split} questions asked .* which has {count} "
    ):
        sample(world, count + 1, 0, split)


def test_a_world_without_a_question_in_the_split_says_so():
    world = make({"world": "sort", "numbers": [2, 2], "largest": 1})
    splits = {split_of("0,1="), split_of("1,0=")}
    assert splits == {"train"}, "choose another tiny world for this test"
    with pytest.raises(UserError, match="no test question"):
        sample(world, 1, 0, "test")
    with pytest.raises(UserError, match="split: expected"):
        sample(world, 1, 0, "dev")


def test_dials_that_never_reach_the_target_say_so():
    world = make({"world": "countdown", "numbers": [2, 2], "largest": 2, "target": [900, 999]})
    with pytest.raises(UserError, match="never make"):
        sample(world, 1, 0, "train")


@pytest.mark.slow
def test_20k_documents_are_written_in_seconds():
    world = make({"world": "chain"})
    mixture = {"direct": 5, "chain": {"weight": 3, "error": 0.02}, "filler": 2}
    seconds = []
    for seed in range(3):  # the best of three, because other work on the machine slows a processor down
        start = time.process_time()
        texts = corpus(world, mixture, 20_000, seed, TEMPLATE)
        seconds.append(time.process_time() - start)
        assert len(texts) == 20_000
    assert min(seconds) < 1.5


def test_a_document_may_be_shown_in_its_prompt():
    """The rest of the documents is as without."""
    world = make({"world": "chain", "terms": [2, 3]})
    shown, plain = (
        corpus(world, {"chain": 0.5, "direct": 0.5}, 20, 3, template)
        for template in ("<user>{question}{response}<assistant>", TEMPLATE)
    )
    for (prompt, response), (bare, same) in zip(shown, plain, strict=True):
        assert response == same
        assert prompt == bare.replace("<assistant>", f"{response}<assistant>")
