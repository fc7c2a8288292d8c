"""What claims and published numbers may name; a mistake is one line."""

import pytest

from encore.errors import UserError

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
    del folder.specs["paper"]["claims"]["lifts"]["test"]["against"]
    folder.set("paper", "claims/lifts/test/against_metric", "heldout/length")
    with pytest.raises(UserError, match=r"claims\.lifts\.test\.against_metric: it goes with against"):
        folder.load()


@pytest.mark.parametrize(
    ("metric", "valid"),
    [
        ("mean/clip_fraction", True),
        ("last_fifth/length/incorrect", True),
        ("max/ratio_deviation", True),
        ("auc/length/incorrect", True),
        ("auc/", False),
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
    changes = {"of": "hot/grpo", "against": "base-recipe/grpo", "metric": metric}
    folder.specs["paper"]["claims"]["lifts"]["test"] |= changes
    if valid:
        folder.load()
        return
    with pytest.raises(
        UserError, match=r"claims\.lifts\.test\.metric: expected a final number of stage hot/grpo"
    ):
        folder.load()


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_with_margin_0_a_claim_says_which_effect_would_matter(folder, direction):
    folder.specs["paper"]["claims"]["lifts"]["test"] |= {"direction": direction, "margin": 0}
    with pytest.raises(
        UserError, match=r"claims\.lifts\.test\.smallest_effect: missing; with margin 0 nothing says"
    ):
        folder.load()
    folder.set("paper", "claims/lifts/test/smallest_effect", 0.02)
    folder.load()


def test_a_margin_above_0_may_have_a_smaller_effect_beside_it(folder):
    folder.set("paper", "claims/lifts/test/smallest_effect", 0.02)
    folder.load()


@pytest.mark.parametrize("margin", [0, 0.05])
def test_the_smallest_effect_of_an_equality_is_its_margin(folder, margin):
    folder.specs["paper"]["claims"]["lifts"]["test"] |= {"direction": "equal", "margin": margin}
    folder.load()
    folder.set("paper", "claims/lifts/test/smallest_effect", 0.02)
    with pytest.raises(
        UserError, match=r"claims\.lifts\.test\.smallest_effect: of a claim of equality the margin is"
    ):
        folder.load()


def primaries(folder, scales):
    """The claim of `paper` once for each of `scales` (a list, or None for all), all of them primary."""
    claim = folder.specs["paper"]["claims"]["lifts"]
    own = [{"scales": at} if at else {} for at in scales]
    folder.set(
        "paper", "claims", {f"c{number}": claim | {"primary": True} | at for number, at in enumerate(own)}
    )


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ([None] * 4, "claims.c3.primary: a fourth primary claim at scale cpu; at most 3, and c0, c1, c2 are"),
        (
            [["paper"], ["cpu"], None, ["paper"], None],
            "claims.c4.primary: a fourth primary claim at scale paper; at most 3, and c0, c2, c3 are",
        ),
    ],
)
def test_a_fourth_primary_claim_at_one_scale(folder, scales, message):
    primaries(folder, scales)
    with pytest.raises(UserError) as error:
        folder.load()
    assert message in str(error.value)


def test_three_primary_claims_at_each_scale_and_others_that_are_not(folder):
    primaries(folder, [["cpu"], ["paper"], None, None, None])
    folder.set("paper", "claims/c4/primary", False)
    folder.load()


SAMPLED = {"samples": 4, "temperature": 1.0, "top_p": 1.0, "max_gen_toks": 8, "k": [1, 4]}


@pytest.mark.parametrize(
    ("task", "metric", "valid"),
    [
        ({"lm_eval": "hellaswag", "metric": "acc_norm"}, "score", True),
        ({"lm_eval": "hellaswag", "metric": "acc_norm"}, "accuracy", True),
        ({"lm_eval": "hellaswag", "metric": "acc_norm"}, "length", False),
        ({"lm_eval": "hellaswag", "metric": "acc_norm"}, "pass@1", False),
        ({"lm_eval": "drop", "metric": "f1"} | SAMPLED, "score", True),
        ({"lm_eval": "drop", "metric": "f1"} | SAMPLED, "pass@4", True),
        ({"lm_eval": "drop", "metric": "f1"} | SAMPLED, "accuracy/difficulty=3", False),
    ],
)
def test_metrics_of_a_task_of_lm_eval(folder, task, metric, valid):
    folder.set("paper", "evals/tasks/tax", task)
    folder.set("paper", "claims/lifts/test/metric", f"tax/{metric}")
    if valid:
        folder.load()
        return
    with pytest.raises(UserError, match=rf'claims\.lifts\.test\.metric: unknown metric "{metric}"'):
        folder.load()


CLAIM = {
    "says": "It helps.",
    "paper": "2402.03300",
    "test": {
        "metric": "heldout/accuracy",
        "of": "base-recipe/after",
        "against": "hot/after",
        "direction": "higher",
        "margin": 0.1,
    },
}


def test_a_claim_without_its_paper_is_refused(folder):
    folder.set("paper", "claims", {"gain": {key: CLAIM[key] for key in ("says", "test")} | {"source": "§2"}})
    with pytest.raises(UserError, match=r"claims\.gain\.paper: missing"):
        folder.load()


@pytest.mark.parametrize(
    ("source", "paper"),
    [
        ("ours", "ours"),
        ("Ours; §3 fears it of another reward", "ours"),
        ("§2, as said here of sums", "ours"),
        ("arXiv 2601.03525v2, abstract", "2601.03525"),
    ],
)
def test_a_claim_is_of_the_origin_that_its_source_names(folder, source, paper):
    folder.set("paper", "claims", {"gain": CLAIM | {"source": source}})
    with pytest.raises(UserError) as error:
        folder.load()
    assert f'claims.gain.paper: expected "{paper}", as its source says, got "2402.03300"' in str(error.value)
    folder.set("paper", "claims/gain/paper", paper)
    assert folder.load()["paper"].claims("cpu")[0].paper == paper


@pytest.mark.parametrize("source", ["§6.1, Fig. 2; arXiv 2404.10719 finds the opposite", "four hours of §3"])
@pytest.mark.parametrize("paper", ["2402.03300", "https://example.org/post", "ours"])
def test_a_source_that_names_no_origin_may_be_of_any(folder, source, paper):
    folder.set("paper", "claims", {"gain": CLAIM | {"source": source, "paper": paper}})
    folder.load()


def test_each_attempt_before_counts(folder):
    assert folder.load()["paper"].document.claims["lifts"].attempt == 1
    folder.set("paper", "claims/lifts/again", ["2026-11-22: open, 8 seeds"])
    assert folder.load()["paper"].document.claims["lifts"].attempt == 2
    folder.set("paper", "claims/lifts/again", [])
    with pytest.raises(UserError, match=r"claims\.lifts\.again: must not be empty"):
        folder.load()
