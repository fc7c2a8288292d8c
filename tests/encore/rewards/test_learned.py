"""A process reward model as a reward: each aggregation against passes over the prefixes alone."""

import math

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from encore import worlds
from encore.errors import UserError
from encore.models import language_model, reward_model
from encore.recipe.shape import Shape
from encore.rewards.learned import AGGREGATIONS, of_steps, points
from encore.rewards.step_rewards import placer

WORLD = worlds.make({"world": "chain"})
WORDS = worlds.tokenizer([WORLD])
SHAPE = {"hidden_size": 32, "layers": 1, "max_position_embeddings": 128}
QUESTION, BEGUN = "3+4+5=", "<think>3+4=8,"
TEXTS = ("<think>3+4=7,7+5=12</think><answer>12</answer>", "<answer>9</answer>", "", "8+5=13")
BEGINNINGS = ("", "", "", BEGUN)


@pytest.fixture(scope="module")
def scorer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scorer")
    language_model.build(Shape(**SHAPE), WORDS, 0).save_pretrained(folder)
    torch.manual_seed(1)
    member = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1)
    return reward_model.RewardModel([member], WORDS, [0.0], [1.0], "here")


def batch() -> dict:
    prompts = [f"<user>{QUESTION}<assistant>{begun}" for begun in BEGINNINGS]
    ids = [[*WORDS(text)["input_ids"], WORDS.eos_token_id] for text in TEXTS]
    columns = {"question": [QUESTION] * 4, "answer": ["12"] * 4, "prefill": [*BEGINNINGS]}
    return {"prompts": prompts, "completions": [*TEXTS], "completion_ids": ids, **columns}


def chance(scorer, prompt: str, ids: list[int]) -> float:
    whole = torch.tensor([[*WORDS(prompt)["input_ids"], *ids]])
    with torch.no_grad():
        score = reward_model.at_last_token(scorer.members[0], whole, torch.tensor([whole.shape[1] - 1]))
    return torch.sigmoid(score.double()).item()


def scored(chances: list[float]) -> float:
    """Points by the words of the guides: +1 for a right step, -0.5 for a wrong one, the last one's bonus."""
    total = 0.0
    for chance_of_step in chances:
        total += 1 if chance_of_step > 0.5 else -0.5
    return total / len(chances) + (chances[-1] > 0.5)


@pytest.mark.parametrize(
    ("aggregation", "of"),
    [("last", lambda c: c[-1]), ("product", math.prod), ("min", min), ("sum", sum), ("points", scored)],
)
def test_the_chances_of_the_steps_and_of_the_answer_make_the_reward(scorer, aggregation, of):
    given, logged = batch(), {}
    reward = of_steps(scorer, WORDS, placer(WORLD, WORDS), aggregation)
    found = reward(**given, log_metric=lambda name, value: logged.update({name: value}))
    cuts = [["<think>3+4=7", "<think>3+4=7,7+5=12"], [], [], ["8+5=13"]]
    chances = [
        [
            *(chance(scorer, prompt, WORDS(cut)["input_ids"]) for cut in prefixes),
            chance(scorer, prompt, ids),
        ]
        for prompt, prefixes, ids in zip(given["prompts"], cuts, given["completion_ids"], strict=True)
    ]
    assert found == pytest.approx([of(one) for one in chances], rel=1e-5)
    assert reward.__name__ == "reward_model"
    assert logged == {"rewards/reward_model/steps": (3 + 1 + 1 + 2) / 4}


def test_more_steps_of_a_right_one_pay_by_their_sum_alone():
    one, two = [math.log(0.9)] * 2, [math.log(0.9)] * 3
    assert {name for name, of in AGGREGATIONS.items() if of(two) > of(one) + 1e-9} == {"sum"}


def test_points_average_over_steps_so_that_padding_hides_a_wrong_one():
    right, wrong = math.log(0.9), math.log(0.4)
    assert points([right, right]) == 2.0
    assert points([wrong, wrong]) == -0.5
    assert points([right, wrong]) == 0.25  # no bonus: the answer is wrong
    assert points([wrong, right]) == 1.25
    assert points([wrong, right, right, right]) > points([wrong, right])
    assert AGGREGATIONS["min"]([wrong, right, right, right]) == AGGREGATIONS["min"]([wrong, right])


def test_another_tokenizer_and_missing_ids_are_told(scorer):
    other = worlds.tokenizer([worlds.make({"world": "countdown"})])
    with pytest.raises(UserError, match="the reward model here and the policy have different tokenizers"):
        of_steps(scorer, other, placer(WORLD, other), "min")
    with pytest.raises(ValueError, match="needs completion_ids"):
        of_steps(scorer, WORDS, placer(WORLD, WORDS), "min")([], [])
