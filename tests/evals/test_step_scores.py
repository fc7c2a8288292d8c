"""Scores by steps: each chance against a pass over that prefix alone; selection against all subsets."""

import math
from itertools import combinations

import pytest
import torch
from saved_models import save_reward_model
from stage_runs import finished
from transformers import AutoModelForSequenceClassification

from encore import worlds
from encore.models import reward_model
from encore.sampling.completion import Completion
from encore.worlds.protocol import Problem
from evals import step_scores

CHAIN = {"world": "chain"}
WORLD = worlds.make(CHAIN)
WORDS = worlds.tokenizer([WORLD])
RIGHT = "<think>3+4=7,7+5=12</think><answer>12</answer>"
SLIP = "<think>3+4=8,8+5=12</think><answer>12</answer>"  # a wrong trace of a right answer
PROBLEM = Problem("3+4+5=", "12", 3)


@pytest.fixture(scope="module")
def proxy(checkpoint, tmp_path_factory):
    """metrics.json of a reward model with a random head on the backbone of `checkpoint`."""
    folder = tmp_path_factory.mktemp("proxy")
    torch.manual_seed(3)
    member = AutoModelForSequenceClassification.from_pretrained(checkpoint.parent / "final", num_labels=1)
    save_reward_model([member], WORDS, [0.0], [1.0], folder / "final")
    return finished(folder)


def row(*texts: str) -> dict:
    prompt = WORDS(f"<user>{PROBLEM.question}<assistant>")["input_ids"]
    completions = []
    for text in texts:
        ids = [*WORDS(text)["input_ids"], WORDS.eos_token_id]
        completions.append(Completion(text, len(ids), False, ids, prompt))
    return {
        "question": PROBLEM.question,
        "answer": PROBLEM.answer,
        "difficulty": PROBLEM.difficulty,
        "completions": completions,
    }


def test_each_step_has_the_chance_that_its_prefix_has_alone(proxy):
    model = reward_model.load(proxy)
    texts = (RIGHT, "<answer>9</answer>", SLIP)
    made_row = row(*texts)
    chances = step_scores.log_chances(model, [made_row], WORLD)
    member = model.members[0].double()
    for text, completion, found in zip(texts, made_row["completions"], chances, strict=True):
        ends = WORLD.step_ends(PROBLEM, text)
        prefixes = [[*completion.context, *WORDS(text[:end])["input_ids"]] for end in ends]
        prefixes.append([*completion.context, *completion.ids])
        with torch.no_grad():
            expected = [
                torch.sigmoid(
                    reward_model.at_last_token(member, torch.tensor([ids]), torch.tensor([len(ids) - 1]))
                ).item()
                for ids in prefixes
            ]
        assert [math.exp(one) for one in found] == pytest.approx(expected, rel=1e-5)
    assert [len(found) for found in chances] == [3, 1, 3]


def test_product_and_minimum_are_over_all_steps():
    chances = [[math.log(0.5), math.log(0.8)], [math.log(0.3)]]
    assert [*map(math.exp, step_scores.scores(chances, "proxy_product"))] == pytest.approx([0.4, 0.3])
    assert [*map(math.exp, step_scores.scores(chances, "proxy_min"))] == pytest.approx([0.5, 0.3])


@pytest.mark.parametrize(
    ("text", "trace"), [(RIGHT, 1.0), (SLIP, 0.0), ("<answer>12</answer>", 0.0), ("", 0.0), ("=:,", 0.0)]
)
def test_a_trace_is_right_where_it_has_steps_and_none_is_wrong(text, trace):
    assert step_scores.right_trace(WORLD, PROBLEM, text) == trace


def test_the_best_of_n_by_each_score_is_the_mean_over_all_subsets(command, checkpoint, proxy, heldout):
    selectors = {"proxy": "bon", "proxy_product": "bon_product", "proxy_min": "bon_min"}
    task = heldout | {"samples": 5, "k": [1, 3], "score": [*selectors, "trace"]}
    status, result, rows = command(task, checkpoint, proxy=proxy)
    assert status == 0
    metrics = result["tasks"]["heldout"]["metrics"]
    for score, best in selectors.items():
        picked = [
            row["correct"][max(some, key=lambda i: row[score][i])]
            for row in rows
            for some in combinations(range(5), 3)
        ]
        assert metrics[f"accuracy/{best}@3"]["value"] == pytest.approx(sum(picked) / len(picked))
        assert metrics[f"accuracy/{best}@1"]["value"] == pytest.approx(metrics["accuracy"]["value"])
        drawn = [one for row in rows for one in row[score]]
        assert metrics[score]["value"] == pytest.approx(sum(drawn) / len(drawn))
    assert {"trace", "trace_correct", "trace_incorrect"} <= metrics.keys()
    assert all(row["proxy_product"][i] <= row["proxy_min"][i] for row in rows for i in range(5))
