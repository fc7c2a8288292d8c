"""Arms that claims compare on several tasks: the probability of improvement stands beside the verdicts."""

import pandas as pd
import pytest
import yaml

from analysis.study import across, document
from analysis.study.judge import command, judge

SCORES = {("a", "x"): 0.6, ("b", "x"): 0.4, ("a", "y"): 0.3, ("b", "y"): 0.3}


@pytest.fixture
def folder(tmp_path):
    """On x each run of a is better than each of b, on y they are equal; c is measured on x alone."""
    rows = [
        {"arm": arm, "seed": seed, "metric": task, "value": score + seed / 100 * (task == "x")}
        for (arm, task), score in SCORES.items()
        for seed in range(1, 9)
    ]
    rows += [{"arm": "c", "seed": seed, "metric": "x", "value": 0.5} for seed in range(1, 9)]
    pd.DataFrame(rows).to_csv(tmp_path / "scores.csv", index=False)
    return tmp_path


def write(folder, *claims):
    stated = {
        f"claim-{i}": {
            "says": "One is better.",
            "test": {"metric": metric, "of": f"{of}/after", "against": f"{against}/after"}
            | {"direction": direction, "margin": 0.05},
        }
        for i, (of, against, metric, direction) in enumerate(claims)
    }
    study = {"title": "Tasks", "runs": {"after": {"files": ["scores.csv"]}}, "claims": stated}
    (folder / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    return folder / "study.yaml"


def pairs(folder, *claims):
    study = document.load(write(folder, *claims))
    return across.shared(study, judge(study, folder).collected.table)


def test_two_tasks_count_alike(folder):
    (pair,) = pairs(folder, ("a", "b", "x", "higher"), ("a", "b", "y", "higher"), ("a", "c", "x", "higher"))
    assert (pair.of, pair.against, pair.tasks) == ("a/after", "b/after", ("x", "y"))
    assert pair.improvement == pytest.approx((0.75, 0.75, 0.75))
    assert pair.has_one_scale


def test_where_less_is_claimed_less_is_better(folder):
    (pair,) = pairs(folder, ("a", "b", "x", "lower"), ("a", "b", "y", "higher"))
    assert pair.improvement.value == pytest.approx(0.25)
    assert across.draw([pair]) is None


def test_one_task_or_a_claim_of_equality_is_no_pair(folder):
    assert pairs(folder, ("a", "b", "x", "higher"), ("a", "b", "y", "equal")) == []


def test_the_page_has_the_number_and_the_profiles(folder):
    command(write(folder, ("a", "b", "x", "higher"), ("a", "b", "y", "higher")), None)
    page = (folder / "study/index.html").read_text(encoding="utf-8")
    assert "Across tasks" in page
    assert "0.750 [0.750, 0.750]" in page
    assert (folder / "study/profiles.svg").is_file()
    assert pd.read_csv(folder / "study/improvement.csv").value.tolist() == [0.75]
