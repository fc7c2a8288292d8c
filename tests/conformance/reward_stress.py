"""What Encore's own rewards pay for, measured: results/published/reward_stress.csv.gz.

    python tests/conformance/reward_stress.py

A row is a reward, a task and a kind of response, as `encore reward stress` tables them. The tasks are the
worlds with their default dials, and a few rows of data for each verifier of data sets, written here.
"""

import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from encore import worlds
from encore.recipe.reward_names import COMMON, OF_ANSWERS, OF_WORLDS
from encore.recipe.task import Rewarded
from encore.rewards.outcomes import Outcome, faults, outcomes, text
from encore.rewards.stress import Stress
from encore.rewards.subjects import of_part
from encore.sandbox.verdicts import REWARDS

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "results/published/reward_stress.csv.gz"
COMMAND = "python tests/conformance/reward_stress.py"
PROBLEMS = 16
CAP, CACHE = 256, 64  # tokens, of reward soft_overlong

MATHS = [
    {"question": question, "answer": answer}
    for question, answer in (
        ("What is 7 times 6?", "42"),
        ("A shop sells 1,200 pens and then 34 more. How many is that?", "1234"),
        ("What is half of 1?", "\\frac{1}{2}"),
        ("What is 3 divided by 4?", "0.75"),
        ("Subtract 12 from 5.", "-7"),
        ("Simplify x*x + x*x.", "2x^2"),
        ("Write the square root of 12 in its simplest form.", "2\\sqrt{3}"),
        ("Which numbers solve x^2 = 4? Answer with a set.", "\\{-2, 2\\}"),
        ("What is the day after Monday?", "Tuesday"),
        ("A train takes 90 minutes. How many hours is that?", "1.5"),
    )
]
COUNTDOWNS = [
    {"question": f"Make {target} of {numbers}.", "numbers": numbers, "target": target}
    for numbers, target in (([3, 5, 7], 36), ([2, 9], 18), ([8, 3, 4], 28), ([10, 6, 2, 5], 3))
]
PROGRAMS = [
    {"question": f"Write {name}, as in: {shown}", "answer": f"['{shown}', '{hidden}']"}
    for name, shown, hidden in (
        ("a function double", "assert double(2) == 4", "assert double(5) == 10"),
        ("a function last", "assert last([1, 2]) == 2", "assert last([7]) == 7"),
    )
]


def parts(folder: Path) -> Iterator[tuple[str, Rewarded, str]]:
    """Yield the name of each task, the task with one reward, and the reward; data are written to `folder`."""
    for name in worlds.WORLDS:
        task = {"world": name}
        names = ["accuracy", *worlds.make(task).rewards]
        if name == "chain":
            names = list(dict.fromkeys([*names, *COMMON, *OF_ANSWERS, *OF_WORLDS]))
        for reward in names:
            yield f"world {name}", _part(task, reward, problems=PROBLEMS), reward
    columns = {"question": "question", "answer": "answer"}
    of_countdown = {"question": "question", "numbers": "numbers", "target": "target"}
    for verifier, rows, named, rewards in (
        ("math", MATHS, columns, ["accuracy"]),
        ("countdown", COUNTDOWNS, of_countdown, ["accuracy"]),
        ("tests", PROGRAMS, columns, ["accuracy", *REWARDS]),
    ):
        file = folder / f"{verifier}.jsonl"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        for reward in rewards:
            yield (
                f"data, verifier {verifier}",
                _part({"file": str(file), "verifier": verifier, **named}, reward),
                reward,
            )


def _part(task: dict, reward: str, **keys: int) -> Rewarded:
    return Rewarded.model_validate({"task": task, "rewards": {reward: 1.0}, **keys})


def stressed() -> list[Outcome]:
    """Stress every reward of ours. A fault of one raises AssertionError."""
    rows: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, part, reward in parts(Path(folder)):
            subject = of_part(part, name, part.rewards or {}, caps={0: CAP}, cache=CACHE)
            scored = [*Stress(subject).run()]
            assert not faults(reward, scored), faults(reward, scored)
            rows += outcomes(reward, name, scored)
    return rows


def main() -> None:
    TABLE.write_bytes(gzip.compress(text(stressed()).encode(), mtime=0))
    print(f"wrote {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
