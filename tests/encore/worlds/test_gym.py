"""Every task of reasoning-gym as a world: its problems, its scorer, and what goes wrong with either."""

import os
import random
import shutil
import subprocess
import sys
import time

import pytest

pytest.importorskip("reasoning_gym")
from reasoning_gym.factory import DATASETS

from encore.errors import UserError
from encore.recipe.checks import capacity
from encore.recipe.graph import Graph
from encore.recipe.load import load_all
from encore.rewards import rules
from encore.runtime import extras
from encore.sandbox.pool import Pool
from encore.worlds import gym, make, sample, split_of
from encore.worlds.protocol import Problem

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")
NAMES = sorted(DATASETS)
UNANSWERED = ("boxnet", "rush_hour")  # of which the library gives no right answer
KEYS = {"composite": {"datasets": [{"name": "lcm", "weight": 1.0, "config": {}}]}}
LENIENT = {"game_of_life_halting"}  # whose scorer takes any text that is not "True" as "False"
SUMS = {"reasoning_gym": "chain_sum", "min_terms": 2, "max_terms": 3, "min_digits": 1, "max_digits": 2}
HOSTILE = (
    "<answer>__import__('os').system('id')</answer>",
    "<answer>" + "(" * 5000 + "1" + ")" * 5000 + "</answer>",
    "<answer>" + "9" * 19_000 + "</answer>",
    "<answer>" + "x" * 10**6 + "</answer>",
    "<answer>9**9**9**9**9</answer>",
    "<answer>[1]*10**10</answer>",
    "<answer>exit()</answer>",
    "<answer>\0\ud800\n</answer>",
    "<answer>{}</answer>",
    "\\boxed{" * 999,
    "",
)


def stated(text: str) -> str:
    return f"<think>so</think><answer>{text}</answer>"


def of(name: str) -> gym.Gym:
    return make({"reasoning_gym": name, **KEYS.get(name, {})})


def drawn(name: str, seed: int, count: int = 4) -> list[Problem]:
    rng, world = random.Random(seed), of(name)
    return [world.problem(rng) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_answer_of_every_task_is_right_and_another_text_is_wrong(name):
    problems = drawn(name, seed=1)
    right = [of(name).verify(problem, stated(problem.answer)) for problem in problems]
    assert right == [name not in UNANSWERED] * 4
    assert bool(problems[0].answer) is (name not in UNANSWERED)
    assert all(problem.question.strip() and problem.number for problem in problems)
    if name not in LENIENT:
        assert of(name).scores(problems, [stated("neither of these")] * 4) < [gym.RIGHT] * 4
    assert of(name).scores(problems, ["neither of these"] * 4) == [0.0] * 4


def test_no_task_of_the_library_is_left_out():
    assert len(NAMES) == 106
    with pytest.raises(UserError, match="valid: ") as told:
        sample(make({"reasoning_gym": "zzzzzzzz"}), 1, 0, "train")
    assert str(told.value).rpartition("valid: ")[2].split(", ") == sorted(NAMES)


@pytest.mark.slow
def test_every_process_draws_the_same_problems():
    """Some tasks of the library depend on the order of sets, some on the state of `random`."""
    names = ("codeio", "isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note")
    code = (
        "import random, sys; random.seed(sys.argv[1]); from encore.worlds import make\n"
        f"for name in {(*names, 'word_ladder', 'pool_matrix')}:\n"
        "    world, rng = make({'reasoning_gym': name}), random.Random(3)\n"
        "    print([(p.question, p.answer, p.number) for p in [world.problem(rng) for _ in range(6)]])\n"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", code, seed],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "77")
    ]
    assert texts[0] == texts[1]


def test_a_problem_is_scored_where_it_was_not_drawn(monkeypatch):
    """As of samples that another stage has saved; also of a data set that is made whole when it is opened."""
    for name in ("chain_sum", "list_functions", "countdown"):
        problems = drawn(name, seed=5, count=2)
        of(name).drawn.clear()
        given = [Problem(p.question, p.answer, 0, number=p.number) for p in problems]
        assert of(name).scores(given, [stated(p.answer) for p in problems]) == [1.0, 1.0]
        assert not of(name).drawn


def test_the_splits_share_no_question_whatever_a_question_ends_with():
    """Every question of letter_counting has other words before its last ": "."""
    for task in (SUMS, {"reasoning_gym": "string_insertion"}):
        train, test = (sample(make(task), 60, 0, split) for split in ("train", "test"))
        assert not {p.question for p in train} & {p.question for p in test}
        assert {split_of(p.question) for p in test} == {"test"}
        assert sample(make(task), 20, 0, "train") == train[:20]


def test_a_task_with_few_questions_says_so():
    few = {"reasoning_gym": "gcd", "min_numbers": 2, "max_numbers": 2, "min_value": 1, "max_value": 3}
    with pytest.raises(UserError, match=r"asked of world \"reasoning_gym gcd\", which has"):
        sample(make(few), 500, 0, "train")


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"reasoning_gym": "chain_sums"}, 'reasoning_gym: no task "chain_sums"; did you mean "chain_sum"?'),
        (
            {"reasoning_gym": "chain_sum", "min_term": 2},
            'min_term: task "chain_sum" of reasoning-gym has no key "min_term"; did you mean "min_terms"?',
        ),
        (
            {"reasoning_gym": "chain_sum", "min_terms": "two"},
            "min_terms: input should be a valid integer, got 'two'",
        ),
        (
            {"reasoning_gym": "chain_sum", "min_terms": 5, "max_terms": 2},
            "min_terms: max_terms must be >= min_terms, got 5",
        ),
        ({"reasoning_gym": "chain_sum", "seed": 5}, 'has no key "seed"; valid: '),
        ({"reasoning_gym": "word_sorting", "transformation": "loud"}, "'lowercase', 'uppercase'"),
        ({"reasoning_gym": "composite"}, "reasoning_gym: must specify at least one dataset"),
    ],
)
def test_a_mistake_is_one_line(keys, line):
    with pytest.raises(UserError) as told:
        sample(make(keys), 1, 0, "train")
    assert line in str(told.value)
    assert "\n" not in str(told.value)


def test_keys_have_the_types_of_the_library():
    dates = {"reasoning_gym": "time_intervals", "min_date": "2020-01-01", "max_date": "2020-02-01"}
    words = {"reasoning_gym": "word_sorting", "transformation": "uppercase"}
    letters = {"reasoning_gym": "polynomial_multiplication", "variables": ["x", "y"]}
    for keys in (dates, words, letters):
        assert make(keys).problem(random.Random(0)).question


def test_keys_with_which_there_is_no_problem_are_told(monkeypatch):
    monkeypatch.setattr(gym, "program", lambda: SOURCE + "\nTask.entry = lambda self, item: 1 / 0")
    with pytest.raises(UserError, match=r"reasoning_gym lcm makes no problem with these keys \(ZeroDivision"):
        gym.Gym("lcm").problem(random.Random(0))


def test_without_the_library_recipes_are_read_and_a_plan_says_how_to_install_it(monkeypatch):
    """The first command of the README has no extras, and reads the recipes with all of their scales."""
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    monkeypatch.setattr(gym, "_values", lambda *arguments: pytest.fail("the sandbox was asked"))
    graph = Graph(load_all())
    nodes = graph.grid("r1_zero", "small", ["base-recipe"], [1])
    with pytest.raises(UserError) as told:
        capacity.check_capacity(graph, nodes)
    first, *others = told.value.lines
    assert all("is not installed here" in line for line in others)
    assert first == (
        "recipes/r1_zero/small.yaml: stages.grpo.task.reasoning_gym: basic_arithmetic, but reasoning-gym is "
        "not installed here; `pip install -e '.[gym]'`, or leave the task out (scale small, arm base-recipe)"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain_sum", "spiral_matrix", "countdown", "simple_integration"])
def test_hostile_completions_are_wrong_and_harm_no_other(name):
    """The scorer of spiral_matrix evaluates an answer as Python, that of countdown as SymPy."""
    (problem,) = drawn(name, seed=2, count=1)
    began = time.monotonic()
    scores = of(name).scores([problem] * (len(HOSTILE) + 1), [*HOSTILE, stated(problem.answer)])
    assert scores[-1] == 1.0
    assert max(scores[:-1]) < gym.RIGHT
    assert time.monotonic() - began < 90


SOURCE = gym.program()
FAULTS = {
    "hangs": "while True: answer = 'bad'",
    "sleeps": "import time; time.sleep(99)",
    "raises": "raise SystemExit",
    "dies": "import os; os.abort()",
    "no number": "return 'many'",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_scorer_that_fails_over_an_answer_makes_it_wrong_and_no_other(fault, monkeypatch):
    lines = [
        "score = type(task.data).score_answer",
        "def faulty(self, answer, entry):",
        "    if answer == 'bad':",
        f"        {FAULTS[fault]}",
        "    return score(self, answer, entry)",
        "type(task.data).score_answer = faulty",
    ]
    problems, world = drawn("lcm", seed=3), gym.Gym("lcm")
    program = "\n".join([f"{SOURCE}\ntask = Task('lcm', '{{}}')", *lines])
    values = gym._values
    with Pool(2, gym.Limits(wall=10.0, cpu=60, memory=4 << 30), gym.LOADED) as pool:
        monkeypatch.setattr(gym, "_pool", lambda pid: pool)
        monkeypatch.setattr(gym, "_values", lambda source, calls, budget: values(program, calls, budget))
        texts = ["bad", problems[1].answer, problems[2].answer, "0"]
        assert world.scores(problems, [stated(text) for text in texts]) == [0.0, 1.0, 1.0, 0.0]


def test_an_answer_may_also_stand_in_a_box():
    (problem,) = drawn("chain_sum", seed=4, count=1)
    texts = [f"so \\boxed{{{problem.answer}}}", f"<answer>$\\boxed{{{problem.answer}}}$</answer>", "1" * 99]
    assert of("chain_sum").scores([problem] * 3, texts) == [1.0, 1.0, 0.0]


def test_a_batch_is_scored_once_for_both_rewards(monkeypatch):
    world, calls = make({"reasoning_gym": "spell_backward"}), []
    problems = drawn("spell_backward", seed=6)
    accuracy, partial = rules.build(["accuracy", "partial"], world)
    scores = gym.Gym.scores
    monkeypatch.setattr(gym.Gym, "scores", lambda *given: calls.append(1) or scores(*given))
    answers = [problems[0].answer, problems[1].answer[:-1] + "#", "", problems[3].answer]
    columns = {
        "prompts": [p.question for p in problems],
        "completions": [stated(text) for text in answers],
        "question": [p.question for p in problems],
        "answer": [p.answer for p in problems],
        "number": [p.number for p in problems],
    }
    assert accuracy(**columns) == [1.0, 0.0, 0.0, 1.0]
    assert 0 < partial(**columns)[1] < 1
    assert len(calls) == 1
