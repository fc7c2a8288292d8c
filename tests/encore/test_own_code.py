"""Code of one's own: found by its name, held to the contract, told in one line where it breaks it."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from encore import own_code, worlds
from encore.errors import UserError
from encore.rewards import rules, verifiers
from encore.runtime import reward_checks

REWARDS = """
import re, time
def length(prompts, completions, **columns):
    return [len(text) / 10 for text in completions]
def fewer(prompts, completions, **columns):
    return [1.0]
def no_number(prompts, completions, **columns):
    return [float("nan")] * len(completions)
def fails(prompts, completions, question, **columns):
    return [1.0 / len(question[0].strip("0123456789+")) for _ in completions]
def swallows(*given):
    try:
        time.sleep(30)
    except:
        return [1.0]
def sleeps(*given, **columns):
    try:
        time.sleep(30)
    except Exception:
        pass
def catastrophic(text):
    return bool(re.fullmatch("(a|a)*b", text))
def same(question, answer, completion):
    return answer in completion
number = 1
"""
WORLD = """
from dataclasses import dataclass
from encore.worlds.protocol import Problem
@dataclass(frozen=True)
class Parity:
    largest: int = 99
    name = "parity"
    vocabulary = (*"0123456789", "even", "odd")
    kinds = {"direct": lambda world, problem, rng: problem.answer}
    rewards = {}
    def problem(self, rng):
        number = rng.randint(0, self.largest)
        return Problem(str(number), "odd" if number % 2 else "even", 0)
    def verify(self, problem, completion):
        return completion.endswith(problem.answer)
    def steps(self, problem, completion):
        return []
    def step_ends(self, problem, completion):
        return []
    def document(self, problem, kind, rng, **dials):
        return self.kinds[kind](self, problem, rng, **dials)
@dataclass(frozen=True)
class Half:
    name = "half"
"""
# the one process that this one has started
SAY_CHILD = "print(open(f'/proc/self/task/{os.getpid()}/children').read(), flush=True)"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(REWARDS)
    (tmp_path / "places.py").write_text(WORLD)
    return tmp_path


def called(name, *completions):
    (reward,) = rules.build([name], None)
    asked = ["1+1"] * len(completions)
    given = [[{"role": "assistant", "content": text}] for text in completions]
    return reward(prompts=asked, completions=given, completion_ids=None, question=asked, answer=["2"])


def test_a_reward_of_ones_own_gets_texts():
    assert called("mine:length", "abcde", "") == [0.5, 0.0]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mine:fewer", "mine:fewer: expected a list of 2 numbers, got 1 values"),
        ("mine:no_number", "mine:no_number: expected a finite number, got nan for 'a'"),
        ("mine:fails", "mine:fails: ZeroDivisionError: .* (mine.py, line 10)"),
        ("mine:lenght", 'rewards.mine:lenght: nothing is called "lenght" in mine.py; did you mean "length"?'),
        ("nowhere:length", "rewards.nowhere:length: no file nowhere.py in .*"),
        ("mine:a:b", "rewards.mine:a:b: expected my_module:name, a Python file and a name in it"),
    ],
)
def test_what_breaks_the_contract_is_one_line(name, says):
    with pytest.raises(UserError) as error:
        called(name, "a", "b")
    assert re.fullmatch(re.escape(says).replace(r"\.\*", ".*"), str(error.value))


@pytest.mark.parametrize(
    ("name", "given"), [("mine:sleeps", ()), ("mine:catastrophic", ("a" * 60,)), ("mine:swallows", ())]
)
def test_a_call_has_an_end(name, given):
    """A sleep, a regular expression that would work for years, and an answer that came too late."""
    function = own_code.load(name)
    with pytest.raises(UserError, match=r"not done after 0\.2 seconds"):
        own_code.bounded("mine:it", function, 0.2)(*given)


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "return sum(range(10**15))",  # days within one step of Python
        """
    while True:
        try:
            time.sleep(1)
        except:
            pass""",
    ],
)
def test_what_cannot_be_interrupted_ends_the_process_in_a_line(folder, body):
    """And what the process has started ends with it."""
    (folder / "stuck.py").write_text(f"import time\ndef it(*given):\n    {body}\n")
    program = (
        "import os; from encore import own_code; f = own_code.load('stuck:it');"
        f" {SAY_CHILD}; own_code.bounded('stuck:it', f, 0.2)(1)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.returncode == -signal.SIGVTALRM
    assert done.stderr == (
        "\nerror: stuck:it: not done after 0.2 seconds of one call, nor to be interrupted;"
        " it must be faster\n"
    )
    wait_for_end(int(done.stdout))


@pytest.mark.slow
def test_the_watch_ends_with_the_process(folder):
    program = (
        "import os, signal; from encore.own_code import bounded; bounded('a:b', abs, 0.2)(1);"
        f" {SAY_CHILD}; os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    wait_for_end(int(done.stdout))


def wait_for_end(process: int) -> None:
    deadline = time.monotonic() + 20
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_contract_is_checked_before_training(folder):
    """By completions without meaning, of which one is empty."""
    (folder / "mine.py").write_text("def first(completions, **_): return [ord(t[0]) for t in completions]")
    (reward,) = rules.build(["mine:first"], None)
    rows = [{"prompt": "1+1", "question": "1+1", "answer": "2"}]
    tokenizer = worlds.tokenizer([worlds.make({"world": "chain"})])
    with pytest.raises(UserError, match="mine:first: IndexError"):
        reward_checks.before_sampling("", None, tokenizer, rows, {"mine:first": reward}, True)


def test_a_verifier_of_ones_own():
    verify = verifiers.verifier("mine:same")
    assert verify(worlds.Problem("1+1", "2", 0), "so 2") is True
    assert verify(worlds.Problem("1+1", "2", 0), "so 3") is False


def test_a_file_that_is_no_python(folder):
    (folder / "broken.py").write_text("x = 1\ndef f(:\n")
    with pytest.raises(UserError, match=r"broken:f: broken\.py, line 2: not Python: "):
        own_code.check_name("broken:f")
    (folder / "late.py").write_text("def f(): pass\nraise ValueError('no')")
    own_code.check_name("late:f")  # it is not run to be checked
    with pytest.raises(UserError, match=r"late\.py: ValueError: no \(late\.py, line 2\)"):
        own_code.load("late:f")


def test_a_world_of_ones_own():
    world = worlds.make({"world": "places:Parity", "largest": 9, "code": {"places:Parity": "a digest"}})
    problems = worlds.sample(world, 3, 0, "train")
    assert all(world.verify(one, one.answer) for one in problems)
    with pytest.raises(UserError, match='has no dial "larges"; did you mean "largest"'):
        worlds.make({"world": "places:Parity", "larges": 9})
    with pytest.raises(UserError, match="world: places:Half lacks vocabulary, kinds, rewards, problem"):
        worlds.make({"world": "places:Half"})
