"""Section `dials`: seeds that are not judged, equal budgets, a sweep that is there; a mistake is one line."""

import copy
from typing import Any

import pytest

DIAL = {"what": "learning rate", "seeds": [1000, 1001, 1002], "outcome": "3e-6 was taken"}
TRIALS = {"base-recipe": 2, "hot": 2}


@pytest.fixture
def swept(folder):
    """`paper` with a dial from recipe `rates`: two rates for `base-recipe`, two for `hot`, on its seeds."""
    rates = copy.deepcopy(folder.specs["paper"])
    del rates["claims"]
    fast: dict[str, Any] = {"learning_rate": 6.0e-6}
    hot: dict[str, Any] = {"temperature": 1.2}
    rates["arms"] = {
        "base-recipe": {"about": "as it is"},
        "fast": {"about": "faster", "stages": {"grpo": {"args": fast}}},
        "hot": {"about": "hot", "stages": {"grpo": {"args": hot}}},
        "hot-fast": {"about": "both", "stages": {"grpo": {"args": hot | fast}}},
    }
    folder.specs["rates"] = rates | {"first_seed": 1000, "seeds": 3}
    folder.set("paper", "dials", [DIAL | {"sweep": "rates", "trials": TRIALS}])
    return folder


def test_dial_seeds_are_those_of_all_dials(folder):
    assert folder.load()["paper"].dial_seeds == set()
    folder.set("paper", "dials", [DIAL, DIAL | {"seeds": [0, 1000]}])
    folder.set("paper", "first_seed", 1)
    assert folder.load()["paper"].dial_seeds == {0, 1000, 1001, 1002}


@pytest.mark.parametrize(
    ("first", "seeds", "judged", "advised"),
    [(None, [0], 0, 1), (1, [0, 1], 1, 2), (3, [7, 0], 7, 8), (0, [31], 31, 32)],
)
def test_no_dial_seed_is_judged(folder, first, seeds, judged, advised):
    folder.set("paper", "dials", [DIAL, DIAL | {"seeds": seeds}])
    if first is not None:
        folder.set("paper", "first_seed", first)
    text = folder.mistake()
    assert f"dials[1].seeds: seed {judged} would be judged too: judged seeds count from first_seed" in text
    assert text.endswith(
        f"({first or 0}), up to 32 of them; set first_seed: {advised}, or choose dials on seeds from 1000 on"
    )
    folder.set("paper", "first_seed", max(seeds) + 1)
    folder.load()


def test_a_dial_seed_beyond_the_last_look_is_never_judged(folder):
    folder.set("paper", "dials", [DIAL | {"seeds": [32]}])
    folder.load()


def test_the_first_seed_advised_is_past_every_dial(folder):
    folder.set("paper", "dials", [DIAL | {"seeds": [0]}, DIAL | {"seeds": [20]}])
    assert "dials[0].seeds: seed 0 would be judged too" in folder.mistake(lines=2)
    assert "set first_seed: 21," in folder.mistake(lines=2)


def test_claims_are_not_judged_on_the_seeds_of_dials(folder):
    folder.set("paper", "dials", [DIAL])
    folder.set("paper", "first_seed", 1000)
    assert (
        "first_seed: seeds from 1000 on are for dials, and claims are judged on those below"
        in folder.mistake()
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": []}, "dials[0].seeds: must not be empty"),
        ({"seeds": [-1]}, "dials[0].seeds[0]: expected at least 0, got -1"),
        ({"seed": [1]}, 'dials[0].seed: unknown key; did you mean "seeds"?'),
        ({"outcome": None}, "dials[0].outcome: expected text, got nothing"),
        ({"trials": {"dpo": 0}}, "dials[0].trials.dpo: expected at least 1, got 0"),
        ({"trials": {"dpo": 4, "ppo": 4, "sft": 3}},
         "dials[0].trials: dpo has 4, sft 3; a fair comparison gives every method as many"),
    ],
)  # fmt: skip
def test_mistake(folder, changes, message):
    folder.set("paper", "dials", [DIAL | changes])
    assert message in folder.mistake()


def test_trials_without_a_sweep_are_of_any_methods(folder):
    folder.set("paper", "dials", [DIAL | {"trials": {"dpo": 4, "ppo": 4}}])
    folder.load()


def test_a_sweep_that_has_the_trials(swept):
    swept.load()


def test_a_sweep_that_is_not_there(swept):
    swept.set("paper", "dials/0/sweep", "rate")
    assert 'dials[0].sweep: unknown recipe "rate"; did you mean "rates"?' in swept.mistake()


def test_a_sweep_of_other_seeds(swept):
    swept.set("rates", "first_seed", 2000)
    assert (
        "dials[0].seeds: expected the seeds of recipe rates, [2000, 2001, 2002]; got [1000, 1001, 1002]"
        in swept.mistake()
    )


def test_a_sweep_of_fewer_trials(swept):
    swept.set("paper", "dials/0/trials", {"base-recipe": 3, "hot": 3})
    assert (
        "dials[0].trials.base-recipe: 3, but recipe rates has 2 arms nearest to it at scale cpu"
        in swept.mistake()
    )


def test_trials_of_a_method_that_the_sweep_lacks(swept):
    """An arm of the sweep is a trial of the method it is nearest to, and of no other."""
    swept.remove("rates", "arms/hot-fast")
    assert "dials[0].trials.hot: 2, but recipe rates has 1 arms nearest to it" in swept.mistake()


def test_trials_of_an_arm_that_is_not_there(swept):
    swept.set("paper", "dials/0/trials", {"base-recipe": 2, "hott": 2})
    assert 'dials[0].trials.hott: unknown arm at scale cpu; did you mean "hot"?' in swept.mistake()


def test_a_sweep_of_other_stages_has_no_trials(swept):
    stage = swept.specs["rates"]["stages"].pop("grpo")
    swept.specs["rates"]["stages"]["rl"] = stage
    for layer in (*swept.specs["rates"]["arms"].values(), *swept.specs["rates"]["scales"].values()):
        if "stages" in layer:
            layer["stages"]["rl"] = layer["stages"].pop("grpo")
    swept.set("rates", "evals/checkpoints", {"before": "rl.policy", "after": "rl"})
    assert "dials[0].trials.base-recipe: 2, but recipe rates has 0 arms nearest to it" in swept.mistake()


def test_a_sweep_without_a_scale_of_ours(swept):
    swept.specs["rates"]["scales"] = {"tiny": {"about": "x"}}
    swept.specs["tiny"]["scales"] = {"cpu": {"about": "small"}, "tiny": {"about": "smaller"}}
    assert "dials[0].sweep: recipe rates has no scale of this recipe's" in swept.mistake()


def test_an_arm_without_trials_takes_none_from_its_method(swept):
    """The arm `both` has the very settings of one of the trials of `hot`."""
    swept.set("paper", "arms/both", swept.specs["rates"]["arms"]["hot-fast"])
    swept.load()
