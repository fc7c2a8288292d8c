"""Rejection sampling of what a test has a policy say: an empty pool is one line, garbage is counted."""

import random
from collections.abc import Callable
from pathlib import Path

import jobs
import pytest
import stage_runs

from encore import worlds
from encore.data import demonstrations
from encore.errors import UserError
from encore.runtime import files, reward_checks, sentinel
from encore.sampling.completion import Completion
from encore.sampling.draw import Drawn
from encore.stages import rejection_sampling
from encore.stages.outcome import Outcome
from encore.worlds import Problem

TASK = {"world": "bilingual", "terms": [2, 2]}
CONFIG = {
    "task": TASK,
    "template": stage_runs.TEMPLATE,
    "problems": 4,
    "keep": {"language_consistency": 1.0, "readability": 1.0},  # as of recipe r1
    "args": {"num_generations": 3, "temperature": 1.0, "top_p": 1.0, "max_completion_length": 40},
}
WORSE = (
    "\ud800",
    "\x00\n\u2028",
    "٣ plus ٣ is ٦ ",
    "9" * 5000,
    "<answer>" * 1000,
    "<think>one <answer>NaN</answer>",
)
GARBAGE = (*reward_checks.GARBAGE, *WORSE)
Say = Callable[[Problem], str]


def document(kind: str, **dials: float) -> Say:
    world = worlds.make(TASK)
    return lambda problem: world.document(problem, kind, random.Random(0), **dials)


def untidy(problem: Problem) -> str:
    return document("readable")(problem).replace("</think>", "..</think>")


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The metrics.json of a policy that has a tokenizer and no weights."""
    folder = tmp_path_factory.mktemp("speaker")
    worlds.tokenizer([worlds.make(TASK)]).save_pretrained(folder / "final")
    metrics = stage_runs.finished(folder)
    files.write_json(metrics, sentinel.read_sentinel(metrics) | {"config": {}})
    return metrics


@pytest.fixture
def sampled(speaker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """(completions of a question, whether they are cut) -> the stage's outcome, in the test's folder."""

    def run(says: list[Say], cut: bool = False) -> Outcome:
        def draw(prompts: list[str], *rest: object) -> Drawn:
            problems = [Problem(prompt[len("<user>") : -len("<assistant>")], "", 2) for prompt in prompts]
            texts = [say(problem) for problem in problems for say in says]
            return Drawn([Completion(text, tokens=3, truncated=cut) for text in texts], 0, 0)

        monkeypatch.setattr(rejection_sampling, "draw", draw)
        config = CONFIG | {"args": CONFIG["args"] | {"num_generations": len(says)}}
        return jobs.run(rejection_sampling, config, {"policy": speaker}, tmp_path)

    return run


@pytest.mark.parametrize(
    ("say", "cut", "says"),
    [
        (document("readable"), True, "0 ended within the cap; a larger max_completion_length"),
        (document("readable", error=1.0), False, "12 ended within the cap, of them 0 right; more num_gen"),
        (document("one_language", other=1.0), False, "12 right, of them 0 with language_consistency >= 1; "),
        (untidy, False, "12 with language_consistency >= 1, of them 0 with readability >= 1; a lower keep"),
    ],
    ids=["all cut", "nothing right", "the other language", "nothing readable"],
)
def test_an_empty_pool_is_told_in_one_line(say, cut, says, sampled, tmp_path: Path):
    with pytest.raises(UserError, match=f"^0 of 12 completions kept: [^\n]*{says}[^\n]*would help$"):
        sampled([say] * 3, cut)
    assert not (tmp_path / "final").exists()
    assert len((tmp_path / "completions.jsonl").read_text().splitlines()) == 12  # to see what it says


def test_garbage_is_counted_and_left_out(sampled, tmp_path: Path):
    says = [lambda problem, text=text: text for text in GARBAGE]
    with pytest.raises(UserError, match=r"of them 0 right; .*would help$"):
        sampled(says)
    good = document("readable")
    metrics = sampled([*says, good]).metrics
    assert metrics["funnel/sampled"] == 4 * (len(GARBAGE) + 1)
    assert metrics["funnel/right"] == metrics["funnel/kept"] == 4
    rows = demonstrations.load(stage_runs.finished(tmp_path))
    assert [row["completion"] for row in rows] == [good(Problem(row["question"], "", 2)) for row in rows]
