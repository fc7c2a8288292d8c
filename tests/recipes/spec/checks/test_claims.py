"""What claims and published numbers may name; a mistake is one line."""

import pytest

from recipes.errors import UserError

PUBLISHED = {
    "what": "x",
    "value": 1.0,
    "source": "y",
    "metric": "heldout/accuracy",
    "at": "base-recipe/after",
}
PAIR = {
    "what": "x",
    "value": 1.0,
    "source": "y",
    "metric": "win_rate",
    "of": "hot/after",
    "against": "base-recipe/after",
}


@pytest.mark.parametrize(
    ("published", "message"),
    [
        (PUBLISHED | {"scales": ["cpuu"]}, 'published[0].scales: unknown scale "cpuu"; did you mean "cpu"?'),
        (
            PUBLISHED | {"scales": ["cpu"], "metric": "heldot/accuracy"},
            'published[0].metric: unknown task at base-recipe/after (scale cpu) "heldot"',
        ),
        (
            PAIR | {"metric": "winrate"},
            'published[0].metric: unknown metric of two policies "winrate"; did you mean "win_rate"?',
        ),
        (PAIR | {"at": "base-recipe/after"}, "published[0].at: of and against are given too; remove it"),
        (
            {k: v for k, v in PAIR.items() if k != "against"},
            "published[0].against: missing; of, against and metric go together",
        ),
        (
            PAIR | {"of": "hott/after"},
            'published[0].of: unknown arm at scale cpu "hott"; did you mean "hot"?',
        ),
        (
            PAIR | {"against": "base-recipe/aftr"},
            'published[0].against: unknown checkpoint of arm base-recipe "aftr"; did you mean "after"?',
        ),
    ],
)
def test_mistake_in_a_published_number(folder, published, message):
    folder.set("paper", "published", [published])
    with pytest.raises(UserError) as error:
        folder.load()
    assert message in str(error.value)


def test_two_policies_of_the_recipe_can_be_compared(folder):
    folder.set("paper", "published", [PAIR, PAIR | {"scales": ["cpu"], "metric": "length_controlled"}])
    folder.load()


def test_against_metric_alone(folder):
    del folder.specs["paper"]["claims"][0]["against"]
    folder.set("paper", "claims/0/against_metric", "heldout/length")
    with pytest.raises(UserError, match=r"claims\.lifts\.against_metric: it goes with against"):
        folder.load()


@pytest.mark.parametrize(
    ("metric", "valid"),
    [
        ("mean/clip_fraction", True),
        ("last_fifth/length/incorrect", True),
        ("max/ratio_deviation", True),
        ("updates_to/accuracy=0.5", True),
        ("samples_to/accuracy=1", True),
        ("accuracy/validation", True),
        ("accuracy/margin=q1", True),
        ("agreement", True),
        ("samples_to/accuracy=50", False),
        ("updates_to/accuracy=0.0", False),
        ("updates_to/reward=0.5", False),
        ("mean/", False),
        ("average/clip_fraction", False),
    ],
)
def test_a_claim_about_a_stage_takes_a_final_number_of_training(folder, metric, valid):
    changes = {"of": "hot/grpo", "against": "base-recipe/grpo", "metric": metric, "needs": "ratio"}
    folder.specs["paper"]["claims"][0] |= changes
    if valid:
        folder.load()
        return
    with pytest.raises(UserError, match=r"claims\.lifts\.metric: expected a final number of stage hot/grpo"):
        folder.load()
