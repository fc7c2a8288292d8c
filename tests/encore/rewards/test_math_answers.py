"""Which texts are the same answer, and which completions give one at all."""

import json
import os
import signal
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.rewards import algebra
from encore.rewards.algebra import Algebra, Reply
from encore.rewards.answer_forms import form
from encore.rewards.math_answers import Comparer
from encore.worlds.final_answer import final_answer, reference

EQUAL = [
    ("8", "8"),
    ("8", "8."),
    ("8", " 8 "),
    ("8", "$8$"),
    ("8", "8.0"),
    ("8", "x=8"),
    ("8", "{8}"),
    ("8", "08"),
    ("0.75", ".750"),
    ("3/4", "6/8"),
    ("1000", "1,000"),
    ("1000000", r"1,\!000,\!000"),
    (r"12\frac{3}{5}", r"12 \frac{3}{5}"),
    (r"12\frac{3}{5}", "12 3/5"),
    (r"12\frac{3}{5}", "12.6"),
    ("1000", r"1\,000"),
    ("1000", "1 000"),
    ("1000", "1e3"),
    ("0.001", "1e-3"),
    ("1000", r"10^3"),
    (r"\frac{1}{2}", "0.5"),
    (r"\frac12", r"\dfrac{1}{2}"),
    ("1/2", "0.50"),
    ("45", "45°"),
    ("45", r"45^\circ"),
    ("45", r"45^{\circ}"),
    ("45", "45 degrees"),
    ("18", "18 dollars"),
    ("18", r"\$18"),
    ("18", r"18\text{ dollars}"),
    ("18", "18 duck eggs"),
    ("18", "18 men"),
    ("18", "18.00 dollars a day"),
    ("18", "\\$18 per day"),
    ("18", r"18\text{ dollars per day}"),
    ("18", "She makes 18 dollars every day."),
    ("18", "She makes 18 dollars, every day"),
    ("-3", "The change is -3 degrees"),
    (r"5\%", "It grew by 5 percent"),
    ("5 cm", "The board is 5 cm long"),
    ("5 cm", "5"),
    ("5 cm", r"5\,\text{cm}"),
    ("5 cm", "5 centimeters"),
    (r"5\%", "5%"),
    (r"5\%", "5 percent"),
    (r"\varnothing", r"\emptyset"),
    (r"\{\}", r"\emptyset"),
    ("-1", r"e^{i\pi}"),
    (r"[2,3]", r"2\le x\le 3"),
    (r"[2,3]", r"3\ge x\ge 2"),
    (r"(2,\infty)", "x>2"),
    (r"(2,\infty)", "2<x"),
    (r"(-\infty,2]", r"x\leq 2"),
    (r"(-\infty,1)\cup(2,\infty)", r"(2,\infty)\cup(-\infty,1)"),
    ("x^2+2x+1", "(x+1)^2"),
    ("2x+1", "1+2x"),
    ("1,2", "2,1"),
    (r"\{1,2\}", r"\{2,1\}"),
    ("(1,2)", r"\left(1, 2\right)"),
    (r"2\sqrt{3}", r"\sqrt{12}"),
    (r"\sqrt{2}/2", r"\frac{1}{\sqrt{2}}"),
    ("x^2+y^2=1", "1=x^2+y^2"),
    ("1101_2", "1101_{2}"),
    ("Monday", r"\text{Monday}"),
    ("Monday", "monday"),
    ("Yes", "yes"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{bmatrix}1&2\\3&4\end{bmatrix}"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&2\\3&\frac{8}{2}\end{pmatrix}"),
    (r"\begin{pmatrix}1\\x\end{pmatrix}", r"\begin{bmatrix}1\\ x\end{bmatrix}"),
    ("1,2", r"1 \text{ and } 2"),
    ("1,2,3", "1, 2, and 3"),
    (r"\{1,2\}", r"\{1\text{ and }2\}"),
    ("5,-5", r"\pm 5"),
    ("5,-5", "±5"),
    ("5,-5", r"x=\pm 5"),
    ("1,5,-5", r"1, \pm 5"),
    (r"3+\sqrt{2},3-\sqrt{2}", r"3 \pm \sqrt{2}"),
    (r"(\pm 3,0)", r"(\pm 3, 0)"),
    ("2", r"\log_{10} 100"),
    ("3", r"\log_2 8"),
    (r"\sqrt{2}", "√2"),
    (r"\sqrt{12}", "2√3"),
    (r"\frac{1}{2}", "½"),
    (r"2\frac{1}{2}", "2½"),
    ("18", "$18"),
    ("18", "She has a total of 18 eggs"),
    ("18", "Total: 18 eggs"),
    (r"A \approx B", r"A \approx B"),
]
DIFFERENT = [
    ("8", "9"),
    ("8", "5=8"),
    ("8", "8/0"),
    ("0.1", "0.1000001"),
    ("8", "1+1=8"),
    ("8", "8=5"),
    ("x", "(x)'"),
    ("x", "x + 10^{-7}"),
    ("0.3333333", r"\frac{1}{3}"),
    ("123/5", r"12 \frac{3}{5}"),
    ("123/5", "12 3/5"),
    ("12", "1 2"),
    ("x", r"x \mod 7"),
    ("1101_2", "1101_3"),
    ("52_8", "52"),
    ("3:30", "0.1"),
    ("3:30", "3/30"),
    ("2", "2,2"),
    ("E", "e"),
    ("e", "E"),
    ("A", "a"),
    ("(1,2)", r"\{1,2\}"),
    ("(1,2)", "[1,2]"),
    ("(1,2)", "(2,1)"),
    ("(1,2)", "1,2"),
    ("5 cm", "5 m"),
    ("0.05", r"5\%"),
    ("8", "5 or 8"),
    ("8", "$5$ $8$"),
    ("8", "What is 5+3"),
    ("8", "at least 8"),
    ("8", "It is not 8"),
    ("8", "8 or so"),
    ("8", "8 dozen eggs"),
    ("8", "8 eggs and 2 hens"),
    ("8", "8 x"),
    ("8", "8 kb + 1"),
    ("8", "between 7 and 8"),
    ("5 cm", "The board is 5 m long"),
    ("8", "one of 1 2 3 4 5 6 7 8"),
    ("2", "6/3 or 2"),
    (r"(2,\infty)", r"x\ge 2"),
    ("x>2", "x<2"),
    (r"\infty", r"-\infty"),
    ("8", ""),
    ("8", "8!"),
    ("2x", "2y"),
    ("5 cm", r"5\text{ cm}^2"),
    (r"\begin{pmatrix}1&2\end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}"),
    ("8", "the square of 8"),
    ("8", "the cube of 8"),
    ("8", "the reciprocal of 8"),
    ("8", "the opposite of 8"),
    ("8", "anything but 8"),
    ("8", "a multiple of 8"),
    ("8", "it exceeds 8"),
    ("8", "it is a divisor of 8"),
    ("8", "8 kilo"),
    ("8", "8 gross"),
    ("8", "approx 8"),
    ("8", "a number with 8 digits"),
    ("8", "What is 8"),
    ("8", "8 is its square"),
    ("8", r"8 \approx 9"),
    ("8", "8 ≈ 9"),
    ("8", r"8 \ne 9"),
    ("8", r"8 \mapsto 9"),
    ("8", "8} 9} {"),
    ("8", "8%%"),
    (r"90^\circ", r"90 \text{ radians}"),
    ("5 cm", "5 furlongs"),
    (r"\frac{1}{0}", r"\frac{2}{0}"),
    ("5", r"\pm 5"),
    ("1,2", "1 and 3"),
    ("1,2", r"\text{1 and 2 and 3}"),
    ("8", "__import__('os').abort()"),
    ("8", "8\ud800"),
]


@pytest.fixture(scope="module")
def equal():
    return Comparer()


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_answers(equal, one, other):
    assert equal(one, other)
    assert equal(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_answers(equal, one, other):
    assert not equal(one, other)
    assert not equal(other, one)
    assert equal.unfinished == 0


@pytest.mark.parametrize(
    ("percent", "plain"),
    [(r"5\%", "5"), (r"(5\%, 6\%)", "(5, 6)"), (r"\{1\%,2\%\}", r"\{2,1\}"), ("It grew by 5 percent", "5")],
)
def test_only_a_gold_answer_in_percent_tells_that_it_was_asked_for(equal, percent, plain):
    assert equal(percent, plain)
    assert not equal(plain, percent)


@pytest.mark.parametrize(("one", "other"), [pair for pair in EQUAL if pair[0] != "8"])
def test_every_answer_is_equal_to_itself(equal, one, other):
    assert equal(one, one)
    assert equal(other, other)


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        (r"<think>5+3</think><answer>8.</answer>", "8."),
        (r"<answer>The answer is $8$</answer>", "$8$"),
        (r"<answer>Final answer: 8</answer>", "8"),
        (r"so $x = \boxed {8}$.", "8"),
        (r"5+3=8</think> \boxed{8}", "8"),
        (r"\boxed{8} and so \boxed{8}", "8"),
        (r"\boxed{\boxed{8}}", "8"),
        (r"If x is not 0, then it is \boxed{8}", "8"),
        (r"\fbox{7} \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"so $x = \boxed 34$, done", "34"),
        (r"It is \boxed 34.", "34"),
        (r"It is \boxed\frac12", r"\frac12"),
        (r"Write \boxed around it: \boxed{8}", "8"),
        (r"It is \fbox{8}.", "8"),
        (r"Fill $x = \boxed{\phantom{2}}$: it is \boxed{8}.", "8"),
        (r"\boxed{} and \boxed{?}", None),
        (r"\fbox{7} or \fbox{8}", None),
        ("5+3=8\n#### 8", "8"),
        ("so #### 1,000 dollars  \n", "1,000 dollars"),
        ("#### Step 1\n5+3=8\n#### 8", "8"),
        ("<think>5+3=8</think>\n#### 8", "8"),
        ("<answer>#### 8</answer>", "8"),
        ("<answer>$18 per day</answer>", r"\$18 per day"),
        ("#### 7\n#### 8", None),
        ("#### 8\nor perhaps not", None),
        ("####", None),
        ("#" * 100_000, None),
        ("#### 8 " * 100_000, "8"),
        ("#### 7 #### 8", None),
        (r"\boxed 8 " * 100_000, None),
        (r"<think>\boxed{8}</think> It is 9.", None),
        (r"<think>\boxed{8}</think><answer>9</answer>", "9"),
        (r"<think>\boxed{8}", None),
        (r"<think>a</think> \boxed{8} <think> no: \boxed{9}", None),
        (r"\boxed{7} or \boxed{8}", None),
        (r"\boxed{7} then \boxed{8", None),
        (r"\boxed{\boxed{8}", None),
        (r"I would never say \boxed{8}", None),
        (r"The answer is not \boxed{8}", None),
        (r"The sum 3+5=8 is not \boxed{8}", None),
        (r"200-80 = <<200-80=120>>120 pounds will not be used \boxed{120}", "120"),
        (r"8 that are not, so 12 + 8 = $20 \boxed{20}", "20"),
        (r"8 that are not and 12 + 8 = 20 \boxed{2}", None),
        ("It isn't 7\nShe has 8 left \\boxed{8}", "8"),
        (r"Is it \boxed{8}? No, it is not.", None),
        (r"It is \boxed{8}, isn't it?", None),
        (r"Is it $\boxed 8$?", None),
        (r"Is it \boxed{8}? Yes: \boxed{8}.", "8"),
        (r"Is it 7? No. It is \boxed{8}. Do you see?", "8"),
        (r"It is \boxed{8}. No, that is wrong.", "8"),
        (r"I could write \verb|\boxed{8}| but won't", None),
        (r"With \verb|\boxed{7}| one writes \boxed{8}", "8"),
        (r"<answer>It isn't \boxed{8}</answer>", None),
        (r"<answer>$7$ $8$</answer>", None),
        (r"<answer>\boxed{8</answer>", None),
        (r"<answer>8</answer><answer>9</answer>\boxed{8}", None),
        ("<answer></answer>", None),
        ("<answer>8", None),
        ("8", None),
        ("", None),
        (r"\boxed{", None),
        ("\\boxed{" * 100_000, None),
        ("\\boxed{" + "1" * 1_000_000 + "}", None),
    ],
)
def test_the_one_final_answer(completion, answer):
    assert final_answer(completion) == answer


@pytest.mark.parametrize(
    ("column", "answer"),
    [
        (r"so \boxed{7}, then \boxed{8}", "8"),
        (r"\boxed {8}", "8"),
        (r"so $x=\boxed 8$.", "8"),
        (r"so \fbox{8}.", "8"),
        ("She has 3 + 5 = <<3+5=8>>8 eggs.\n#### 8", "8"),
        ("8", "8"),
        (r"\boxed{8", r"\boxed{8"),
    ],
)
def test_the_answer_of_a_reference_solution(column, answer):
    assert reference(column) == answer


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("8", "right"),
        ("8 eggs", "right"),
        ("9", "wrong"),
        ("I do not know", "wrong"),
        ("", "unreadable"),
        (r"\frac{", "unreadable"),
        ("9" * 501, "unreadable"),
    ],
)
def test_what_cannot_be_read_is_told_from_what_is_wrong(equal, answer, verdict):
    assert equal.verdict("8", answer) == verdict


@pytest.mark.fault(
    "a verifier hangs",
    "comparing two answers",
    "ended after so much CPU time, logged, counted as not equal; the next one works",
)
@pytest.mark.slow
def test_a_comparison_without_end_is_cut_and_the_next_one_works(caplog):
    equal = Comparer(limit=0.5)
    assert equal("\\sqrt{12}", "2\\sqrt{3}")
    assert not equal("8", "(10^{9})!")
    assert equal.unfinished == 1
    assert "not compared within 0.5 s of CPU" in caplog.text
    assert equal("\\sqrt{12}", "2\\sqrt{3}")
    equal.algebra.server.kill()  # of something else than a comparison: no verdict depends on it
    equal.algebra.server.wait()
    assert equal("2\\sqrt{3}", "\\sqrt{12}")
    assert equal.unfinished == 1
    equal.close()
    assert equal.algebra.server is None


@pytest.mark.slow
def test_the_limit_is_of_cpu_time(equal):
    """A worker that is stopped for longer than its limit still gives the right verdict."""
    short = Comparer(limit=0.3)
    assert short("\\sqrt{8}", "2\\sqrt{2}")
    group = short.algebra.server.pid  # of the server and its worker
    os.killpg(group, signal.SIGSTOP)
    threading.Timer(1.0, os.killpg, (group, signal.SIGCONT)).start()
    assert short("\\sqrt{12}", "2\\sqrt{3}")
    assert short.unfinished == 0
    short.close()


@pytest.mark.slow
def test_a_pair_that_was_not_finished_is_not_begun_again():
    equal = Comparer(limit=1.0)
    assert not equal("8", "1e999999999")
    start = time.monotonic()
    assert not equal("8", "1e999999999")
    assert time.monotonic() - start < 0.5
    assert equal.unfinished == 2
    equal.close()


def test_a_pair_is_begun_again_with_more_time_alone_and_the_oldest_is_forgotten(monkeypatch):
    """The server is a stand-in that finishes within 2 s; `asked` is what it was asked."""
    asked = []

    def exchange(self, request):
        asked.append(request)
        seconds = json.loads(request)[-1]
        return json.dumps(["equal" if seconds >= 2 else "unfinished", 0.1]).encode()

    monkeypatch.setattr(Algebra, "_exchange", exchange)
    monkeypatch.setattr(algebra, "REMEMBERED", 2)
    compare = Algebra()
    outcomes = [compare("a", "b", seconds).outcome for seconds in (1.0, 1.0, 0.5, 2.0, 0.5, 2.0)]
    assert outcomes == ["unfinished"] * 3 + ["equal"] * 3
    assert len(asked) == 2
    for other in "cda":
        compare("a", other, 2.0)
    assert len(compare.replies) == 2
    compare("a", "b", 2.0)
    assert len(asked) == 6


class Costly:
    """In the place of `Algebra`: a pair `8x`, `(cost)x` is equal, and takes so many seconds."""

    def __init__(self) -> None:
        self.spent = 0.0  # over pairs that were not finished

    def __call__(self, one: str, other: str, seconds: float) -> Reply:
        cost = float(other.strip("()x"))
        if cost <= seconds:
            return Reply("equal", cost)
        self.spent += seconds
        return Reply("unfinished", seconds)


COST = st.floats(0.001, 0.1) | st.floats(0.1, 4.0) | st.floats(100.0, 200.0)


@given(st.lists(COST, max_size=300, unique=True), st.randoms())
def test_a_rollout_has_one_budget_and_no_answer_takes_the_time_of_another(costs, random):
    def verdicts(costs):
        equal = Comparer(budget=60.0)
        equal.algebra = Costly()
        found = equal.verdicts([("8x", f"({cost})x") for cost in costs])
        assert equal.algebra.spent <= 60.0 + 1e-6
        return dict(zip(costs, found, strict=True))

    before = verdicts(costs)
    assert all(before[cost] == "right" for cost in costs if cost <= 0.1)
    assert all(before[cost] == "unreadable" for cost in costs if cost >= 100.0)
    if len(costs) <= 10:  # nobody is short of time
        assert all(before[cost] == "right" for cost in costs if cost <= 4.0)
    random.shuffle(costs)
    assert verdicts(costs) == before


@pytest.mark.slow
def test_answers_without_end_take_no_time_from_right_ones():
    equal = Comparer(limit=0.5, budget=2.0)
    bombs = [f"(10^{{9}}+{i})!" for i in range(8)]
    pairs = [pair for bomb in bombs for pair in (("8", bomb), ("\\sqrt{12}", "2\\sqrt{3}"))]
    assert equal.verdicts(pairs) == ["unreadable", "right"] * 8
    assert equal.unfinished == 8
    equal.close()


@pytest.mark.parametrize(
    "text",
    ["$", "\\", "\\{", "(", ",", "=", "<", "^", "_", "\\text{", "\x00", "\ud800", "((((", "\\cup", "%"],
)
def test_every_text_has_a_form_or_none(equal, text):
    form(text * 20)
    assert not equal("8", text)
