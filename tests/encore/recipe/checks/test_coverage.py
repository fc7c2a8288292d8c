"""Key `coverage`: the checkpoint it names, and what it lets claims name; a mistake is one line."""

import pytest


@pytest.fixture
def covered(folder):
    """`paper`, whose claim asks how much a checkpoint gains on the one that `coverage` names."""
    folder.set("paper", "coverage", "before")
    claim = folder.specs["paper"]["claims"]["lifts"]["test"]
    claim |= {"of": "base-recipe/after", "metric": "heldout/gained"}
    claim.pop("against", None)
    claim.pop("against_metric", None)
    return folder


@pytest.mark.parametrize(
    "name", ["gained", "lost", "both", "neither", "crossover", "crossed", "ahead", "behind"]
)
def test_sound(covered, name):
    covered.specs["paper"]["claims"]["lifts"]["test"]["metric"] = f"heldout/{name}"
    covered.load()


def test_what_is_familiar_needs_the_perplexity(covered):
    covered.specs["paper"]["claims"]["lifts"]["test"]["metric"] = "heldout/familiar"
    assert 'unknown metric "familiar"' in covered.mistake()
    covered.specs["paper"]["evals"]["tasks"]["heldout"]["score"] = ["perplexity"]
    covered.set("tiny", "scales/paper", {"about": "large"})
    covered.set("paper", "evals/models", {"reference": "tiny/pretrain"})
    covered.load()


def test_perplexity_needs_a_reference(covered):
    covered.specs["paper"]["evals"]["tasks"]["heldout"]["score"] = ["perplexity"]
    assert "score: perplexity needs evals.models.reference" in covered.mistake()


def test_the_base_gains_nothing_on_itself(covered):
    covered.specs["paper"]["claims"]["lifts"]["test"]["of"] = "base-recipe/before"
    assert 'unknown metric "gained"' in covered.mistake()


def test_without_coverage_nothing_is_gained(covered):
    del covered.specs["paper"]["coverage"]
    assert 'unknown metric "gained"' in covered.mistake()


def test_an_unknown_checkpoint(covered):
    covered.set("paper", "coverage", "befor")
    assert 'coverage: unknown checkpoint "befor"; did you mean "before"?' in covered.mistake()
