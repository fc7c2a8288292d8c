"""Labelled answers for the audit of the verifiers: those of verifier_variants.yaml, and hostile ones."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from encore.rewards.attacks import ATTACKS, FORMS, Form, Item
from encore.worlds.protocol import Problem


class Variant(NamedTuple):
    verifier: str
    group: str
    problem: Problem
    completion: str
    right: bool


LABELLED = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
TAGGED = "<think></think><answer>{}</answer>"
BOXED = "so it is \\boxed{{{}}}"
GAMING = "responses that game a reward"
# texts that a policy may come upon, or a stranger may send; none is right
HOSTILE: list[str] = [
    *(
        "",
        " ",
        "\0",
        "\ud800",
        "\u202e81",
        "\ufeff",
        "\u0661\u0667",
        "\uff11\uff17",
        "\u2167",
        "\u06f1\u06f7",
        "18\u0338",
        "\u200b" * 100,
        "\U0001f389" * 1000,
    ),
    *(
        "nan",
        "NaN",
        "inf",
        "-inf",
        "Infinity",
        r"\infty",
        "1/0",
        "0/0",
        "1e999",
        "-1e999",
        "1e-999",
        "None",
        "True",
    ),
    *(
        "9" * 400,
        "9" * 501,
        "9" * 100_000,
        "0." + "0" * 400 + "18",
        "1" + "0" * 450,
        "." * 500,
        "-" * 401 + "18",
    ),
    *(
        "9^{9^{9^9}}",
        "9^9^9^9",
        r"(10^{9})!",
        "18!!!!!!!!",
        r"2^{2^{2^{2^{2^{2}}}}}",
        "10^{10^{10}}",
        "(((18!)!)!)!",
    ),
    r"\frac{" * 150,
    "{" * 400,
    "}" * 400,
    "(" * 200 + "17" + ")" * 200,
    "{" * 240 + "17" + "}" * 240,
    *(
        r"\sqrt{" * 60 + "17" + "}" * 60,
        r"\frac{1}{" * 40 + "17" + "}" * 40,
        "^" * 400,
        "_" * 400,
        "1," * 240,
    ),
    *(
        r"\sum_{n=1}^{10^9} n",
        r"\int_0^{10^9} x^x dx",
        r"\prod_{n=1}^{10^{9}} n",
        r"\lim_{x\to 0} \frac{\sin x}{x}",
    ),
    *(
        r"\def\x{\x\x}\x",
        r"\input{/etc/passwd}",
        r"\write18{ls}",
        r"\csname end\endcsname",
        r"\newcommand{\a}{18}",
    ),
    *(
        "__import__('os').abort()",
        "exec('18')",
        "().__class__",
        "lambda: 17",
        "18; import os",
        "${7*7}",
        "{{7*7}}",
        "%s%n",
    ),
    *(
        r"\begin{matrix}" * 20,
        "&" * 400,
        r"\\" * 200,
        "$" * 401,
        r"\text{" * 80,
        r"\left(" * 80,
        "\\" * 399,
        "#" * 400,
    ),
    *(
        "x" * 400,
        "x^" * 200 + "x",
        "+".join("abcdefghij" * 20),
        "*".join(["(x+1)"] * 80),
        "(x+y+z+1)^{400}",
        "i" * 300,
    ),
    "<answer>" * 50,
    "18" * 200,
    "18 " * 150,
    "17 or " * 80,
    "the answer is " * 35,
    "\n" * 499,
    "\t18\t17",
    r"\boxed{17" * 50,
    "=18" * 120,
    "18=" * 120,
    ">" * 400,
    "18:17",
    "18%%",
    r"\$" * 200,
    "18" + "'" * 300,
]
FLOODS = [
    "\\boxed{",
    "<answer>",
    "18 ",
    "\\boxed{17} ",
    "{",
    "#### 17 ",
    "\ud800",
    "<think>",
    "\n",
    "$",
    "\\",
]
EVIL = [
    "9**9**9**9",
    "(" * 99,
    "1+" * 60 + "1",
    "__import__('os')",
    "8/0",
    "8 8 3 3",
    "\0",
    "\u096e/3",
    "8/(3-8/3)" * 30,
    "-" * 99,
]


def variants() -> list[Variant]:
    """All of them, of both verifiers."""
    found = []
    for group, answers in LABELLED["boxed"].items():
        found += _labelled("math", group, answers, BOXED)
    found += _labelled("math", "where the answer stands", LABELLED["whole"], "{}")
    found += _labelled("countdown", "expressions", LABELLED["countdown"], TAGGED)
    given = [(TAGGED, BOXED)[i % 2].format(text) for i, text in enumerate(HOSTILE)]
    given += [text * (1_000_000 // len(text)) for text in FLOODS]
    found += [Variant("math", "hostile", Problem("q", "18", 0), text, False) for text in given]
    found += [*_attacks("math", "1234", FORMS[:4]), *_attacks("math", r"\frac{1}{2}", FORMS[:4])]
    found += _attacks("countdown", "8/(3-8/3)", FORMS[:2])
    made = Problem("q", "8/(3-8/3)", 0)
    given = [TAGGED.format(text) for text in [*EVIL, *HOSTILE]]
    return found + [Variant("countdown", "hostile", made, text, False) for text in given]


def _attacks(verifier: str, gold: str, forms: Sequence[Form]) -> Iterator[Variant]:
    """The wrong responses of `encore reward stress`, each in several forms."""
    item = Item("What is it of 8, 8, 3 and 3?", "What?", gold, ("17", "8"), "17")
    for attack in ATTACKS:
        for text in dict.fromkeys(attack.write(item, form) for form in forms if attack.kind == "wrong"):
            yield Variant(verifier, GAMING, Problem(item.question, gold, 0), text, False)


def _labelled(verifier: str, group: str, answers: list[dict], form: str) -> list[Variant]:
    return [
        Variant(verifier, group, Problem("q", one["gold"], 0), form.format(text), label == "right")
        for one in answers
        for label in ("right", "wrong")
        for text in one[label]
    ]
