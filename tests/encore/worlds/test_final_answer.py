"""Which completions give one final answer at all."""

import pytest

from encore.worlds.final_answer import final_answer, reference


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
