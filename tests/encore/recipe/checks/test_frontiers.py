"""Section `frontiers` and what is asked of it; a mistake is one line."""

import pytest

PLACES = ["base-recipe/before", "base-recipe/after", "hot/after"]
METRIC = "heldout/gold_at_kl/2.5"


@pytest.fixture
def frontier(folder):
    """`paper` with free-form replies, and the frontier `swept`, which its claim asks for gold."""
    task = {"task": {"world": "preferences"}, "score": ["gold", "kl"]}
    folder.specs["paper"]["evals"]["tasks"]["heldout"] |= task
    folder.set("tiny", "scales/paper", {"about": "large"})
    folder.set("paper", "evals/models", {"reference": "tiny/pretrain"})
    folder.set("paper", "frontiers", {"swept": PLACES})
    folder.specs["paper"]["claims"]["lifts"]["test"] |= {
        "metric": METRIC,
        "of": "frontier/swept",
        "against_metric": "heldout/gold",
    }
    return folder


@pytest.mark.parametrize(
    "claim",
    [
        {},
        {"metric": "heldout/accuracy_at_kl/.5", "against_metric": "heldout/accuracy"},
        {"of": "hot/after", "metric": "heldout/gold", "against": "frontier/swept", "against_metric": METRIC},
        {"against": "frontier/swept", "against_metric": "heldout/gold_at_kl/0"},
    ],
)
def test_sound(frontier, claim):
    frontier.specs["paper"]["claims"]["lifts"]["test"] |= claim
    frontier.load()


def test_all_tasks_are_compared_at_the_forward_kl_of_the_one_that_scores_it(frontier):
    metric = {"metric": "heldout/accuracy_at_forward_kl/.5", "against_metric": "heldout/accuracy"}
    frontier.specs["paper"]["claims"]["lifts"]["test"] |= metric
    expected = "expected one task with the score forward_kl at base-recipe/before (scale cpu), got"
    assert frontier.mistake().endswith(f"{expected} none")
    tasks = frontier.specs["paper"]["evals"]["tasks"]
    tasks["trained"] = {**tasks["heldout"], "score": ["forward_kl"]}
    frontier.load()
    tasks["heldout"]["score"].append("forward_kl")
    assert frontier.mistake().endswith(f"{expected} heldout, trained")


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"of": "frontier/swpet"}, 'claims.lifts.test.of: unknown frontier "swpet"; did you mean "swept"?'),
        ({"of": "frontier"}, 'claims.lifts.test.of: expected arm/checkpoint or arm/stage, got "frontier"'),
        (
            {"against": "frontier/swept"},
            "claims.lifts.test.against_metric: expected TASK/SCORE_at_kl/NATS or TASK/SCORE_at_forward_kl/"
            'NATS of a frontier, SCORE one of gold, proxy, accuracy; got "heldout/gold"',
        ),
        ({"metric": "gold_at_kl/2.5"}, "claims.lifts.test.metric: expected TASK/SCORE_at_kl/NATS"),
        ({"metric": "heldout/gold_at_kl/-1"}, "claims.lifts.test.metric: expected TASK/SCORE_at_kl/NATS"),
        (
            {"metric": "heldot/gold_at_kl/2.5"},
            'claims.lifts.test.metric: unknown task at base-recipe/before (scale cpu) "heldot"; did you mean',
        ),
        (
            {"metric": "heldout/proxy_at_kl/2.5"},
            "claims.lifts.test.metric: task heldout has no score proxy at base-recipe/before (scale cpu); "
            "it has: gold, kl, accuracy",
        ),
    ],
)
def test_mistake_in_what_is_asked(frontier, claim, message):
    frontier.specs["paper"]["claims"]["lifts"]["test"] |= claim
    assert message in frontier.mistake()


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ([], "frontiers.swept: must not be empty"),
        ("hot/after", 'frontiers.swept: expected a list, got the text "hot/after"'),
        (["hot/after"], "frontiers.swept: expected 2 places or more, got 1"),
        ([*PLACES, "hot/after"], 'frontiers.swept[3]: "hot/after" is written twice'),
        (["hott/after", *PLACES], 'frontiers.swept[0]: unknown arm "hott"; did you mean "hot"?'),
        ([*PLACES, "hot"], 'frontiers.swept[3]: expected arm/checkpoint or arm/stage, got "hot"'),
        (
            [*PLACES, "hot/grpo"],
            'frontiers.swept[3]: unknown checkpoint of arm hot "grpo"; valid: after, before',
        ),
        ([*PLACES, "only-cpu/after"], 'frontiers.swept[3]: arm "only-cpu" does not exist at scale paper'),
        ([*PLACES, "frontier/swept"], 'frontiers.swept[3]: unknown arm "frontier"'),
    ],
)
def test_mistake_in_the_places(frontier, places, message):
    frontier.set("paper", "frontiers/swept", places)
    assert message in frontier.mistake()


def test_a_place_where_the_task_has_no_kl(frontier):
    frontier.set("paper", "arms/hot/evals", {"tasks": {"heldout": {"score": ["gold"]}}})
    place = "claims.lifts.test.metric: task heldout has no score kl at hot/after (scale cpu)"
    assert f"{place}; it has: gold, accuracy" in frontier.mistake()


def test_places_are_needed_at_the_scales_of_the_claims_alone(frontier):
    frontier.set("paper", "frontiers/swept", [*PLACES, "only-cpu/after"])
    frontier.set("paper", "claims/lifts/scales", ["cpu"])
    frontier.load()


def test_a_frontier_that_nothing_asks_for(frontier):
    frontier.set("paper", "frontiers/idle", PLACES)
    assert "frontiers.idle: no claim or gate uses it; remove it" in frontier.mistake()
    frontier.set("paper", "gates", {"far": {"metric": METRIC, "of": "frontier/idle"}})
    frontier.set("paper", "claims/lifts/needs", "far >= 0.1")
    frontier.load()


def test_without_any_frontiers(frontier):
    frontier.remove("paper", "frontiers")
    assert 'claims.lifts.test.of: unknown frontier "swept"' in frontier.mistake()


def test_no_arm_has_the_name(folder):
    folder.set("paper", "arms/frontier", {"about": "an arm"})
    assert "arms.frontier: a reserved name; call the arm something else" in folder.mistake()


def test_a_published_number_is_of_an_arm(frontier):
    published = {"what": "x", "value": 1.0, "source": "y", "metric": METRIC, "at": "frontier/swept"}
    frontier.set("paper", "published", [published])
    assert 'published[0].at: unknown arm "frontier"' in frontier.mistake()
