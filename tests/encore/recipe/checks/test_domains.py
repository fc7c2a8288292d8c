"""Domains of a grpo stage: their form, what cannot be mixed, and the reward model, in one line each."""

import copy

import pytest

from encore.errors import UserError

REASONING = {"task": {"world": "chain"}, "template": "<user>{question}<assistant>", "share": 0.75}
GENERAL = {"task": {"world": "preferences"}, "template": "{question}", "share": 0.25}
DOMAINS = {
    "reasoning": REASONING | {"rewards": {"accuracy": 1.0, "format": 0.5}},
    "general": GENERAL | {"rewards": {"gold": 1.0}, "problems": 64},
}
HUB = {"hub": "org/data", "revision": "a" * 40, "split": "train", "question": "q"}


DRAW = {"num_generations": 4, "temperature": 1.0, "top_p": 1.0, "max_completion_length": 8}
JUDGES = {  # samples, their labels, and the reward model trained on these
    "drawn": GENERAL | {"run": "sample", "needs": {"policy": "tiny/pretrain"}, "args": DRAW},
    "labels": {"run": "label", "by": "gold", "needs": {"data": "drawn"}},
    "judge": {
        "run": "reward_model",
        "needs": {"policy": "tiny/pretrain", "data": "labels"},
        "comparisons": "grouped",
        "args": {"learning_rate": 1.0e-4, "lr_scheduler_type": "linear"},
    },
}
JUDGES["drawn"].pop("share")


@pytest.fixture
def mixed(folder):
    """The stage `grpo` of recipe `paper` on two domains, beside a stage that trains a reward model."""
    stages = folder.specs["paper"]["stages"]
    for key in ("task", "template", "rewards"):
        del stages["grpo"][key]
    stages["grpo"] |= {"domains": copy.deepcopy(DOMAINS), "args": stages["grpo"]["args"] | {"max_steps": 8}}
    stages |= copy.deepcopy(JUDGES)
    del folder.specs["paper"]["arms"]["only-cpu"]
    del folder.specs["paper"]["scales"]["paper"]
    return folder


def test_two_domains_with_a_reward_model_for_one_of_them(mixed):
    assert mixed.load()
    mixed.set("paper", "stages/grpo/needs/reward_model", "judge")
    with pytest.raises(UserError, match=r"stages\.grpo\.needs\.reward_model: no rewards use it; remove it"):
        mixed.load()
    mixed.set("paper", "stages/grpo/domains/general/rewards", {"reward_model": 1.0, "gold": 0.0})
    mixed.set("paper", "stages/grpo/ensemble", "worst")
    assert mixed.load()


def test_an_arm_may_have_one_task_in_place_of_the_domains(mixed):
    one = {"task": {"world": "chain"}, "template": "{question}", "rewards": {"accuracy": 1.0}}
    mixed.set("paper", "arms/hot/stages/grpo", {"domains": None, **one})
    assert mixed.load()


def test_a_reward_model_alone_needs_no_answers(mixed):
    mixed.set("paper", "stages/grpo/needs/reward_model", "judge")
    mixed.set("paper", "stages/grpo/domains/general/rewards", {"reward_model": 1.0})
    mixed.set("paper", "stages/grpo/domains/general/task", HUB)
    assert mixed.load()
    mixed.set("paper", "stages/grpo/domains/general/rewards", {"reward_model": 1.0, "accuracy": 0.0})
    with pytest.raises(UserError, match=r"stages\.grpo\.domains\.general\.task\.verifier: missing"):
        mixed.load()


def test_caps_may_stand_for_the_one_cap_and_their_steps_are_written_plainly(mixed):
    del mixed.specs["paper"]["stages"]["grpo"]["args"]["max_completion_length"]
    with pytest.raises(UserError, match="max_completion_length: missing"):
        mixed.load()
    mixed.set("paper", "stages/grpo/caps", {0: 56, 4: 96})
    spec = mixed.load()["paper"].layers.content
    assert spec["stages"]["grpo"]["caps"] == {"0": 56, "4": 96}
    mixed.set("paper", "stages/grpo/caps", {"0": 56, "four": 96})
    with pytest.raises(UserError, match='caps: expected a number of optimizer steps, got "four"'):
        mixed.load()
    mixed.set("paper", "stages/grpo/caps", {0: 56, 8: 96})
    with pytest.raises(UserError, match=r"stages\.grpo\.caps\.8: expected less than args\.max_steps 8"):
        mixed.load()


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("task", {"world": "chain"}, "stages.grpo.task: each domain has its own; remove task or domains"),
        ("rewards", {"accuracy": 1.0}, "stages.grpo.rewards: each domain has its own"),
        ("problems", 8, "stages.grpo.problems: each domain has its own"),
        ("domains", {"general": DOMAINS["general"]},
         "stages.grpo.domains: expected at least two, got general; one task is"),
        ("domains/general/share", 0.2, "stages.grpo.domains: their shares come to 0.95; expected 1"),
        ("domains/general/share", 1, "stages.grpo.domains.general.share: expected less than 1, got 1"),
        ("domains/general", GENERAL, "stages.grpo.domains.general.rewards: missing"),
        ("domains/general/rewards", {"gold": 0.0},
         "stages.grpo.domains.general.rewards: expected one with a weight other than 0"),
        ("domains/general/rewards", {"golden": 1.0},
         'stages.grpo.domains.general.rewards.golden: unknown reward; did you mean "gold"?'),
        ("domains/general/rewads", {},
         'stages.grpo.domains.general.rewads: unknown key; did you mean "rewards"?'),
        ("domains/General", {}, 'stages.grpo.domains: expected a name of lower-case letters'),
        ("domains/general/template", "no place", "stages.grpo.domains.general.template"),
        ("domains/general/task/word", 1,
         'stages.grpo.domains.general.task.word: world "preferences" has no dial'),
        ("domains/general/task", HUB | {"answer": "a"},
         "stages.grpo.domains.general.task.verifier: missing"),
        ("domains/general/rewards", {"reward_model": 1.0},
         "stages.grpo.domains.general.rewards.reward_model: needs.reward_model is missing"),
        ("ensemble", "worst", "stages.grpo.ensemble: rewards.reward_model is missing"),
        ("domains/general/rewards/soft_overlong", 1.0, "stages.grpo.soft_overlong_cache: missing"),
        ("args/scale_rewards", "batch", "stages.grpo.args.scale_rewards: batch divides the rewards of all"),
        ("args/multi_objective_aggregation", "normalize_then_sum",
         "stages.grpo.args.multi_objective_aggregation: normalize_then_sum normalises over all domains"),
        ("advantage", "moving_average",
         "stages.grpo.advantage: moving_average has a baseline over all domains"),
        ("advantage", "positive", "stages.grpo.advantage: positive reads accuracy alone"),
        ("dynamic_sampling", {"max_rounds": 2}, "stages.grpo.dynamic_sampling: it has its own order of"),
        ("replay", {"every": 4, "share": 0.1}, "stages.grpo.replay: it has its own order of prompts"),
        ("copies", 2, "stages.grpo.copies: domains has its own order of prompts"),
        ("args/shuffle_dataset", True, "stages.grpo.args.shuffle_dataset: domains have their own"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_in_one_line(mixed, path, value, says):
    mixed.set("paper", f"stages/grpo/{path}", value)
    with pytest.raises(UserError) as error:
        mixed.load()
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_the_steps_must_be_known(mixed):
    del mixed.specs["paper"]["stages"]["grpo"]["args"]["max_steps"]
    with pytest.raises(UserError, match=r"args\.max_steps: missing; domains are mixed for all rollouts"):
        mixed.load()
