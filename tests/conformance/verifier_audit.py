"""How often the verifiers of answers are wrong, measured: results/published/verifier_audit.csv.

    python tests/conformance/verifier_audit.py --clones FOLDER

A row is a group of labelled answers: those written by hand (verifier_variants.py), the gold answers of
published evaluation sets, and completions of models with their publishers' labels. A gold answer is put into
a box: 1 against itself, 0 against the answer of the next item whose text is another. The sets are no part of
this repository: FOLDER holds clones of the repositories in SOURCES, each under its own name, and they are
read at the commits given there. Without --clones their rows are kept as they stand in the table.
"""

import argparse
import csv
import io
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from verifier_variants import variants

from encore.rewards.math_answers import Comparer
from encore.rewards.verifiers import countdown, math_verdict
from encore.worlds.answers import answer
from encore.worlds.final_answer import reference
from encore.worlds.protocol import Problem

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "results/published/verifier_audit.csv"
COMMAND = "python tests/conformance/verifier_audit.py"
BY_HAND = "written by hand"
VERDICTS = {"right": "accepted", "wrong": "refused", "unreadable": "unreadable"}
COUNTS = [f"{label}: {verdict}" for label in ("right", "wrong") for verdict in VERDICTS.values()]
COLUMNS = ["verifier", "answers", "source", *COUNTS, "note"]

Labelled = tuple[Problem, str, bool]


class Source(NamedTuple):
    """A file of a public repository, and how its rows become labelled completions."""

    answers: str
    repository: str
    commit: str
    path: str
    read: Callable[[list[dict]], Iterator[Labelled]]
    note: str = ""  # what the counts hold that need a word


def gold_answers(question: str, column: str) -> Callable[[list[dict]], Iterator[Labelled]]:
    def read(rows: list[dict]) -> Iterator[Labelled]:
        golds = [reference(_plain(row[column])) for row in rows]
        for i, (row, gold) in enumerate(zip(rows, golds, strict=True)):
            problem = Problem(str(row[question]), gold, 0)
            yield problem, f"\\boxed{{{gold}}}", True
            others = (other for other in golds[i + 1 :] + golds[:i] if other != gold)
            yield problem, f"\\boxed{{{next(others)}}}", False

    return read


def _plain(value: object) -> str:
    if isinstance(value, list):
        value = value[0]
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def model_solutions(rows: list[dict]) -> Iterator[Labelled]:
    """GSM8K solutions of four models, each twice: with the data set's own `#### 18` in the place of their
    last line `A: 18`, and with a box behind their last sentence."""
    for row in rows:
        gold = row["ground_truth"].rpartition("\nA: ")[2]
        problem = Problem(row["question"], gold, 0)
        for model in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"):
            text, _, last = row[model]["solution"].rpartition("\nA: ")
            for completion in (f"{text}\n#### {last}", f"{text} \\boxed{{{last}}}"):
                yield problem, completion, row[model]["is_correct"]


def graded_solutions(rows: list[dict]) -> Iterator[Labelled]:
    """MATH solutions, graded by the evaluation code of the repository itself."""
    for row in rows:
        for text, right in zip(row["code"], row["score"], strict=True):
            yield Problem(row["question"], row["answer"], 0), text, right


QWEN = ("QwenLM/Qwen2.5-Math", "a45202bd16f1ec06f433442dc1152d0074773465")
OPENAI = ("openai/grade-school-math", "3101c7d5072418e28b9008a6636bde82a006892c")
DATA = "evaluation/data"
EVALUATED = [  # of QWEN: name, folder, columns of question and answer, note
    ("AIME 2024", "aime24", "problem", "answer", ""),
    ("AMC 2023", "amc23", "problem", "answer", ""),
    ("Minerva math", "minerva_math", "problem", "solution", ""),
    ("OlympiadBench", "olympiadbench", "question", "final_answer", ""),
    ("Gaokao 2023 en", "gaokao2023en", "question", "answer", "Two items have no answer."),
]
SOURCES = [
    Source("GSM8K test", *OPENAI, "grade_school_math/data/test.jsonl", gold_answers("question", "answer")),
    *(
        Source(name, *QWEN, f"{DATA}/{folder}/test.jsonl", gold_answers(question, answer), note)
        for name, folder, question, answer, note in EVALUATED
    ),
    Source(
        "GSM8K solutions of four models, labelled, with a mark and with a box",
        *OPENAI,
        "grade_school_math/data/example_model_solutions.jsonl",
        model_solutions,
    ),
    Source(
        "MATH solutions of a model, graded by its authors' code",
        *QWEN,
        f"{DATA}/eval_rm_maj_example/math_cot_100.jsonl",
        graded_solutions,
        "Where the labels differ: that code takes the last of several different boxes, and it "
        "misses 4:30 p.m. in half a text and 10000 for 10{,}000.",
    ),
]


def by_hand() -> list[dict[str, str]]:
    """The rows of the variants written by hand."""
    groups: dict[tuple[str, str], list[Labelled]] = {}
    for one in variants():
        groups.setdefault((one.verifier, one.group), []).append((one.problem, one.completion, one.right))
    return [row(verifier, group, BY_HAND, given) for (verifier, group), given in groups.items()]


def of_source(source: Source, clones: Path) -> dict[str, str]:
    """The row of a published set, from a clone."""
    folder = clones / source.repository.partition("/")[2]
    shown = ["git", "-C", str(folder), "show", f"{source.commit}:{source.path}"]
    text = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in text.splitlines()]
    return row("math", source.answers, _where(source), source.read(rows)) | {"note": source.note}


def _where(source: Source) -> str:
    return f"{source.repository}@{source.commit[:12]}/{source.path}"


def row(verifier: str, answers: str, source: str, labelled: Iterable[Labelled]) -> dict[str, str]:
    """A row of the table: how many right and wrong answers got each verdict."""
    judge = JUDGES[verifier]
    judged = [(right, VERDICTS[judge(problem, text)]) for problem, text, right in labelled]
    counts = Counter(f"{'right' if right else 'wrong'}: {verdict}" for right, verdict in judged)
    numbers = {name: str(counts[name]) for name in COUNTS}
    return {
        "verifier": verifier,
        "answers": answers,
        "source": source,
        **numbers,
        "note": NOTES.get(answers, ""),
    }


NOTES = {
    "where the answer stands": "Unreadable: without box, tag or mark, with several that differ, or denied.",
    "hostile": "Unreadable: longer than an answer, no expression, or not compared within its CPU time.",
}
COMPARER = Comparer()


def _countdown_verdict(problem: Problem, completion: str) -> str:
    """Unreadable where there is no one answer; what is no expression is wrong."""
    if answer(completion) is None:
        return "unreadable"
    return "right" if countdown(problem, completion) else "wrong"


JUDGES: dict[str, Callable[[Problem, str], str]] = {
    "math": lambda problem, completion: math_verdict(COMPARER, problem, completion),
    "countdown": _countdown_verdict,
}


def committed() -> list[dict[str, str]]:
    """The rows of the table as it stands."""
    return list(csv.DictReader(io.StringIO(TABLE.read_text(encoding="utf-8"))))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--clones", type=Path)
    clones = parser.parse_args().clones
    rows = by_hand()
    if clones:
        rows += [of_source(source, clones) for source in SOURCES]
    else:
        rows += [one for one in committed() if one["source"] != BY_HAND]
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    TABLE.write_text(text.getvalue(), encoding="utf-8")
    print(f"wrote {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
