"""Which texts are the same answer."""

import pytest

from encore.rewards.answer_forms import form
from encore.rewards.math_answers import Comparer

EQUAL = [
    ("42", "**42**"),
    ("\\frac{1}{2}", "**$\\frac{1}{2}$**."),
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
    ("8", "**2**3**"),
    ("42", "**43**"),
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


@pytest.mark.parametrize(
    "text",
    ["$", "\\", "\\{", "(", ",", "=", "<", "^", "_", "\\text{", "\x00", "\ud800", "((((", "\\cup", "%"],
)
def test_every_text_has_a_form_or_none(equal, text):
    form(text * 20)
    assert not equal("8", text)
