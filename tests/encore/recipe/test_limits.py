"""Numbers, texts and names that make no sense in a recipe are refused, one line each."""

import re

import pytest
from pydantic import ValidationError

from encore.errors import UserError
from encore.recipe.grpo_args import PpoArgs
from encore.recipe.mistakes import lines

ARGS = "stages/grpo/args"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (f"{ARGS}/learning_rate", 0.0, "stages.grpo.args.learning_rate: expected more than 0, got 0.0"),
        (f"{ARGS}/learning_rate", -1e-3, "stages.grpo.args.learning_rate: expected more than 0, got -0.001"),
        (f"{ARGS}/num_train_epochs", 0, "stages.grpo.args.num_train_epochs: expected more than 0"),
        (f"{ARGS}/max_grad_norm", -1.0, "stages.grpo.args.max_grad_norm: expected at least 0, got -1.0"),
        (f"{ARGS}/beta", -0.1, "stages.grpo.args.beta: expected at least 0, got -0.1"),
        (f"{ARGS}/max_steps", -5, "stages.grpo.args.max_steps: expected at least 1, got -5"),
        (f"{ARGS}/num_generations", 1e30, "stages.grpo.args.num_generations: expected a whole number"),
        (f"{ARGS}/num_generations", 10**30, "stages.grpo.args.num_generations: expected at most 1000000"),
        (f"{ARGS}/temperature", 0.0, "stages.grpo.args.temperature: expected more than 0, got 0.0"),
        (f"{ARGS}/lr_scheduler_type", "linaer", 'unknown value the text "linaer"; did you mean "linear"?'),
        ("seeds", 1_000_000_000, "seeds: expected at most 1000, got 1000000000"),
        ("scales/cpu/seeds", 1001, "scales.cpu.seeds: expected at most 1000, got 1001"),
        ("quickstart/seeds", 1001, "quickstart.seeds: expected at most 1000, got 1001"),
        ("first_seed", 10**18, f"first_seed: expected at most 1000000, got {10**18}"),
        ("stages/grpo/seed", 2**32, f"stages.grpo.seed: expected at most 1000000, got {2**32}"),
        ("title", "", "title: must not be empty"),
        ("title", "x" * 501, "title: expected at most 500 characters, got 501"),
        ("title", "   ", "title: expected some text"),
        ("url", "", "url: must not be empty"),
        ("claims/lifts/source", "", "claims.lifts.source: must not be empty"),
        ("claims/lifts/says", "", "claims.lifts.says: must not be empty"),
        ("claims/lifts/test/margin", -1.0, "claims.lifts.test.margin: expected at least 0"),
    ],
)
def test_numbers_and_texts_that_make_no_sense(folder, key, value, message):
    folder.set("paper", key, value)
    with pytest.raises(UserError) as error:
        folder.load()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("arg", "value"), [("gamma", 0.0), ("gamma", 1.1), ("lam", -0.1), ("kl_coef", -1.0)])
def test_numbers_of_ppo_that_make_no_sense(arg, value):
    with pytest.raises(ValidationError) as error:
        PpoArgs.model_validate({arg: value})
    (line,) = lines(error.value, {arg: value})
    assert re.fullmatch(rf"{arg}: expected (more than|at least|at most) [01], got {value}", line)


NO_NAMES = [
    "two words",
    "a'b",
    'a"b',
    "a\nb",
    "a\n",
    "report.html",
    "a.b",
    "a;b",
    "$(a)",
    "a/b",
    "-a",
    "",
    "a{b}",
]


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("place", ["arms", "scales", "stages", "evals/checkpoints", "evals/tasks"])
def test_no_name_that_a_shell_or_a_folder_could_read_otherwise(folder, place, name):
    at = folder.specs["paper"]
    for key in place.split("/"):
        at = at[key]
    at[name] = at[next(iter(at))]
    with pytest.raises(UserError) as error:
        folder.load()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("arm", ["report", "quickstart", "chosen", "looks", "frontier"])
def test_no_arm_has_the_name_of_a_folder_beside_the_arms(folder, arm):
    folder.set("paper", f"arms/{arm}", {})
    assert f"arms.{arm}: a reserved name; call the arm something else" in folder.mistake()


@pytest.mark.parametrize("name", ["beta-0.1", "zero-1.5b", "1.5", "a-b"])
def test_a_number_in_a_name_has_its_dot(folder, name):
    folder.set("paper", f"arms/{name}", {})
    assert name in folder.load()["paper"].layers.content["arms"]


@pytest.mark.parametrize("key", ["hub", "revision"])
def test_a_line_break_at_the_end_of_a_hub_name(folder, key):
    model = {"hub": "org/name", "revision": "a" * 40}
    folder.set("paper", "scales/paper/stages/grpo/model", model | {key: model[key] + "\n"})
    assert f"stages.grpo.model.{key}: expected " in folder.mistake()


@pytest.mark.parametrize("name", ["Lifts", "a b", "", "a.b"])
def test_the_id_of_a_claim_is_a_name(folder, name):
    folder.set("paper", f"claims/{name}", folder.specs["paper"]["claims"]["lifts"])
    assert "paper.yaml: claims: expected a name of lower-case letters, digits" in folder.mistake()


def test_a_scale_that_was_removed_and_that_a_claim_still_names(folder):
    folder.set("paper", "claims/lifts/scales", ["paper"])
    folder.remove("paper", "scales/paper")
    with pytest.raises(UserError, match=r"claims\.lifts\.scales: unknown scale \"paper\""):
        folder.load()
