"""A study gets the verdicts that the same numbers get in a recipe, and averages nothing away."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from papers import RECIPES

from analysis.numbers.recorded import of_record
from analysis.study import document
from analysis.study.judge import command, judge, lines
from analysis.study.numbers import collect
from analysis.verdicts import claims
from analysis.verdicts.decision import judge_looks
from encore.errors import UserError
from encore.recipe.graph import Graph

RECORDS = Path(__file__).parents[3] / "results/published"
HIGHER = {
    "says": "a ends higher.",
    "test": {
        "metric": "last_fifth/reward",
        "of": "a/train",
        "against": "b/train",
        "direction": "higher",
        "margin": 0.1,
    },
}
STUDY = {
    "title": "A or B",
    "runs": {"train": {"files": ["logs/{arm}-{seed}.csv"]}},
    "claims": {"higher": HIGHER | {"primary": True}},
}


def curve(level, steps=10):
    return pd.DataFrame({"step": range(1, steps + 1), "reward": np.linspace(0, level, steps)})


@pytest.fixture
def folder(tmp_path):
    """Eight seeds of two arms, a curve each, and the file of a study."""
    (tmp_path / "logs").mkdir()
    for arm, level in (("a", 0.9), ("b", 0.5)):
        for seed in range(1, 9):
            curve(level + seed / 100 * (arm == "a")).to_csv(tmp_path / f"logs/{arm}-{seed}.csv", index=False)
    return tmp_path


def write(folder, **changes):
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(STUDY | changes), encoding="utf-8")
    return path


def judged(folder, **changes):
    return judge(document.load(write(folder, **changes)), folder)


@pytest.mark.parametrize("recipe", ["r1_zero", "dr_grpo"])
def test_the_numbers_of_a_record_get_the_verdicts_that_they_get_in_encore(recipe, tmp_path):
    """From files of numbers, a place each, and from the record's own table."""
    run, numbers = of_record(RECORDS / f"{recipe}-cpu", Graph(RECIPES))
    finals = numbers[numbers.step.isna()]
    stated = RECIPES[recipe].claims("cpu")
    places = {side.place.partition("/")[2] for claim in stated for side in claim.test.sides}
    for place in places:
        rows = finals[finals.node == place]
        rows[["arm", "seed", "metric", "value", "low", "high"]].to_csv(tmp_path / f"{place}.csv", index=False)
    content = RECIPES[recipe].layers.content["claims"]
    kept = ("says", "test", "primary")
    asked = {
        claim.id: {key: value for key, value in content[claim.id].items() if key in kept} for claim in stated
    }
    runs = {place: {"files": [f"{place}.csv"]} for place in places}
    result = judged(tmp_path, runs=runs, claims=asked)
    theirs = judge_looks(result.study.claims.values(), finals, "cpu", run.seeds)[-1]
    assert len(result.verdicts) == len(theirs) > 5
    for mine, other in zip(result.verdicts, theirs, strict=True):
        assert (mine.id, mine.word, mine.n, mine.look) == (other.id, other.word, other.n, other.look)
        for name in ("estimate", "low", "high", "level", "differences"):
            ours = getattr(mine, name)
            assert ours == pytest.approx(getattr(other, name), rel=1e-9, nan_ok=True), (mine.id, name)


def test_a_curve_is_read_as_its_metric_says(folder):
    """The last fifth of ten steps is steps 9 and 10."""
    found = collect(document.load(write(folder)), folder)
    values = found.table.set_index(["arm", "seed"]).value
    assert values["b", 1] == pytest.approx((0.5 * 8 / 9 + 0.5) / 2)
    assert (found.notes, found.seeds, found.files) == ([], list(range(1, 9)), {"train": 16})
    verdict = judged(folder).verdicts[0]
    assert (verdict.word, verdict.n) == ("shown", 8)


def test_one_file_of_all_runs_gives_the_same(folder):
    """As W&B exports them, a column a run, and as a table with columns for arm and seed."""
    each = {path.stem: pd.read_csv(path) for path in sorted((folder / "logs").glob("*.csv"))}
    wide = pd.concat({f"{run} - reward": rows.set_index("step").reward for run, rows in each.items()}, axis=1)
    wide.to_csv(folder / "wide.csv")
    tall = [rows.assign(arm=run[0], seed=int(run[2:])) for run, rows in each.items()]
    pd.concat(tall).to_csv(folder / "tall.csv", index=False)
    expected = judged(folder).verdicts
    pattern = {"files": ["wide.csv"], "columns": "{arm}-{seed} - {metric}"}
    for logs in (pattern, {"files": ["tall.csv"]}):
        assert judged(folder, runs={"train": logs}).verdicts == expected


def test_a_file_of_no_seed_is_of_all_seeds_and_counts_once(folder):
    for arm, score in (("a", 0.6), ("base", 0.2)):
        metrics = {"acc,none": score, "acc_stderr,none": 0.01}
        (folder / f"{arm}.json").write_text(json.dumps({"results": {"gsm8k": metrics}}), encoding="utf-8")
    for seed in range(1, 9):
        metrics = {"acc,none": 0.6 + seed / 100, "acc_stderr,none": 0.01}
        (folder / f"a-{seed}.json").write_text(json.dumps({"results": {"gsm8k": metrics}}), encoding="utf-8")
    runs = {"before": {"files": ["base.json"]}, "after": {"files": ["{arm}-{seed}.json"]}}
    test = HIGHER["test"] | {"metric": "gsm8k/acc", "of": "a/after", "against": "a/before"}
    (verdict,) = judged(folder, runs=runs, claims={"lifts": HIGHER | {"test": test}}).verdicts
    assert (verdict.word, verdict.n) == ("shown", 8)
    assert "one run for all 8 seeds" in verdict.note


def test_a_run_may_not_have_a_file_of_all_seeds_and_one_of_its_own(folder):
    curve(0.1).to_csv(folder / "a.csv", index=False)
    with pytest.raises(UserError, match="also covers a, seed 1, which has its own file"):
        judged(folder, runs={"train": {"files": ["logs/{arm}-{seed}.csv", "{arm}.csv"]}})


@pytest.mark.parametrize("seed", ["one", 1.5])
def test_a_seed_is_a_whole_number(folder, seed):
    curve(0.1).assign(arm="a", seed=seed).to_csv(folder / "tall.csv", index=False)
    with pytest.raises(UserError, match=r"tall\.csv: column seed: expected whole numbers"):
        judged(folder, runs={"train": {"files": ["tall.csv"]}})


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (lambda rows: rows.iloc[:7], "train: a, seed 3 ended at step 7 of 10: left out"),
        (lambda rows: rows.assign(reward=math.nan), "reward is not a finite number where it is read"),
        (lambda rows: rows.rename(columns={"reward": "other"}), "train: a, seed 3 has no reward: left out"),
        (
            lambda rows: pd.concat([rows.iloc[:6].assign(reward=99.0), rows]),
            "train: a, seed 3: 6 steps come again, as after a resume: the later rows count",
        ),
        (
            lambda rows: rows.iloc[[0, 2, 1, 3, 5, 4, *range(6, 10)]],
            "train: a, seed 3: the step falls 2 times: the rows are read by rising step",
        ),
    ],
)
def test_what_is_wrong_with_a_run_is_named(folder, change, note):
    path = folder / "logs/a-3.csv"
    change(pd.read_csv(path)).to_csv(path, index=False, na_rep="nan")
    result = judged(folder)
    assert any(note in line for line in lines(result)), lines(result)
    kept = "come again" in note or "falls" in note
    assert result.verdicts[0].n == (8 if kept else 7)
    if not kept:
        assert "no number for seed 3" in result.verdicts[0].note


def test_arms_that_end_at_different_steps_are_named(folder):
    for seed in range(1, 9):
        curve(0.5, steps=20).to_csv(folder / f"logs/b-{seed}.csv", index=False)
    assert "note: train: arms end at different steps (a 10, b 20): each is read at its own end" in lines(
        judged(folder)
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"runs": {"train": {"files": ["log/{arm}-{seed}.csv"]}}}, "runs.train.files: no file"),
        ({"runs": {"train": {"files": [""]}}}, "expected a path from the folder of the study on"),
        ({"runs": {"train": {"files": ["/logs/*.csv"]}}}, "expected a path from the folder of the study on"),
        ({"runs": {"train": {"files": ["logs/{arm}-*.csv"]}}}, "both belong to a, all seeds"),
        ({"runs": {"train": {"files": ["logs/a-1.csv"]}}}, "no file name has its arm and seed"),
        (
            {"runs": {"train": STUDY["runs"]["train"] | {"metrics": {"reward": "rewrad"}}}},
            'runs.train: no file has a metric "rewrad"; did you mean "reward"?',
        ),
        (
            {"claims": {"higher": HIGHER | {"test": HIGHER["test"] | {"metric": "reward"}}}},
            "reward has steps; say how it is read: last_fifth/reward",
        ),
        (
            {"claims": {"higher": HIGHER | {"test": HIGHER["test"] | {"of": "a/trian"}}}},
            'study.yaml: claims.higher.test.of: runs has no "trian"; valid: train',
        ),
        ({"claims": {"higher": HIGHER | {"needs": "x >= 1"}}}, "claims.higher.needs: a key of recipes"),
        ({"run": {}}, 'run: unknown key; did you mean "runs"?'),
    ],
)
def test_a_mistake_is_one_line(folder, changes, said):
    with pytest.raises(UserError) as error:
        judged(folder, **changes)
    assert said in str(error.value)
    assert len(error.value.lines) == 1


def test_the_page_shows_the_verdicts_and_no_markup_of_a_log(folder):
    said = command(write(folder, title="<script>alert(1)</script>"), None)
    assert said[0].startswith("shown           higher  8 seeds: 0.4")
    assert Path(said[-1]) == folder / "study/index.html"
    page = (folder / "study/index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "Judged here, not run here." in page
    assert claims.read_verdicts(folder / "study/claims.csv")[0].word == "shown"
    kept = pd.read_csv(folder / "study/numbers.csv")
    assert len(kept) == 16


def test_fewer_seeds_than_a_look_decide_nothing(folder):
    for seed in range(4, 9):
        for arm in "ab":
            (folder / f"logs/{arm}-{seed}.csv").unlink()
    result = judged(folder)
    assert result.verdicts[0].word == "open"
    assert "3 seeds: nothing is decided below 8" in lines(result)
