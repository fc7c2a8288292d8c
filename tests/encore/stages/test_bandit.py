"""Stage `bandit`: its files, the two paths, and the keys that do not go together."""

import csv

import jobs
import pytest

from encore.bandit import paths, problem
from encore.bandit.estimators import estimate
from encore.errors import UserError
from encore.recipe.kinds.bandit import BanditArgs
from encore.stages import bandit

ARGS = {"learning_rate": 1.0, "steps": 12, "letters": 2, "longest": 3}


def run(folder, **said):
    return jobs.run(bandit, {"args": {**ARGS, **said}}, {}, folder, seed=3)


def test_the_table_of_strings_and_the_numbers(tmp_path):
    outcome = run(tmp_path, beta=0.3, kl="k3")
    rows = list(csv.DictReader((tmp_path / "final/strings.csv").open(encoding="utf-8")))
    assert list(rows[0]) == ["string", "reward", "reference", "before", "after", "optimum"]
    assert len(rows) == 15
    for policy in ("reference", "before", "after", "optimum"):
        assert sum(float(row[policy]) for row in rows) == pytest.approx(1)
    reward = sum(float(row["after"]) * float(row["reward"]) for row in rows)
    assert outcome.metrics["last/reward"] == pytest.approx(reward)
    assert outcome.metrics["max/kl/forward"] < 1e-9 < outcome.metrics["mean/kl/gap"]
    assert outcome.metrics["last/optimum/gradient"] > 1e-3
    assert [check["ok"] for check in outcome.health] == [True]
    again = run(tmp_path / "again", beta=0.3, kl="k3")
    assert again.metrics == outcome.metrics
    assert (tmp_path / "again/final/strings.csv").read_bytes() == (
        tmp_path / "final/strings.csv"
    ).read_bytes()


def test_an_unbiased_estimator_follows_the_exact_path(tmp_path):
    exact, other = (run(tmp_path / name, group=2, advantage=name) for name in ("raw", "leave_one_out"))
    same, turned = (
        exact.metrics["last/reward"],
        run(tmp_path, group=2, advantage="normalized").metrics["last/reward"],
    )
    assert other.metrics["last/reward"] == pytest.approx(same, abs=1e-12) != turned


def test_all_arms_are_measured_at_the_policies_of_the_exact_path():
    drawn = problem.draw(2, 3, graded=True, beta=0.0, error=0.0, seed=3)
    args = BanditArgs(**ARGS, group=2, advantage="normalized")
    policy = drawn.start
    for entry in paths.follow(drawn, args).history:
        made = estimate(drawn, policy, policy, args)
        assert entry["gradient/variance"] == pytest.approx(made.variance.item(), rel=1e-9)
        policy = policy + ARGS["learning_rate"] * problem.gradient(drawn.objective, policy).view_as(policy)


def test_only_updates_on_one_rollout_leave_the_ratio_of_1(tmp_path):
    several, one = run(tmp_path / "several", inner_steps=4, epsilon=0.01), run(tmp_path / "one")
    assert several.metrics["mean/clip_fraction"] > 0
    assert "mean/clip_fraction" not in one.metrics
    drifts = [step for step, name, _ in several.curve if name == "drift"]
    assert drifts == [4, 8, 12]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"group": 4}, r"args\.group: 15 strings make 50,625 groups; at most 20,000"),
        (
            {"objective": "dpo", "beta": 0.1, "letters": 8},
            r"args\.longest: 585 strings make 342,225 pairs; at most 20,000",
        ),
        ({"letters": 8, "longest": 5}, r"args\.longest: 37449 strings make 37,449 groups; at most 20,000"),
        ({"advantage": "centered"}, r"args\.group: advantage centered compares at least 2"),
        ({"beta": 0.1}, r"args\.beta: beta and kl go together"),
        ({"kl": "k1"}, r"args\.beta: beta and kl go together"),
        (
            {"kl": "reward", "beta": 0.1},
            r"args\.kl: a penalty in the reward of each token needs advantage gae",
        ),
        ({"lam": 0.5}, r"args\.lam: it belongs to advantage gae, not to mean"),
        ({"objective": "dpo"}, r"args\.beta: dpo sets the KL penalty by its beta alone"),
        ({"objective": "fine_tuning"}, r"args\.rewards: fine_tuning learns from right strings"),
        ({"objective": "dpo", "beta": 0.1, "group": 2}, r"args\.group: it belongs to policy_gradient, not"),
    ],
)
def test_keys_that_do_not_go_together(said, told):
    with pytest.raises(UserError, match=told):
        jobs.stage("bandit", {"args": {**ARGS, **said}}).check_rules()
