import numpy as np
import pandas as pd
import pytest
from toy_run import changed

from analysis.numbers.means import DASH
from analysis.stage_ladder.measures import by_task, measures, measures_shown


@pytest.fixture(scope="module")
def frame(run, numbers, ladder) -> pd.DataFrame:
    return measures(run, numbers, ladder)


def test_every_step_by_every_measure(frame, numbers):
    heldout = frame[frame.task == "heldout"]
    columns = ["accuracy", "language_consistency", "readability", "format_rate", "length"]
    assert list(dict.fromkeys(heldout.measure)) == columns
    assert list(dict.fromkeys(frame.measure[frame.task == "requests"])) == [
        "accuracy",
        "gold",
        "win_rate",
        "length",
    ]
    assert len(heldout) == 6 * len(columns)
    row = heldout[(heldout.step == "Dev2") & (heldout.measure == "language_consistency")].iloc[0]
    seeds = numbers[(numbers.arm == "base-recipe") & (numbers.node == "dev2")]
    seeds = seeds[seeds.metric == "heldout/language_consistency"].value
    assert len(seeds) == row.models == 2
    assert row.value == pytest.approx(np.mean(seeds))
    assert row.low == pytest.approx(min(seeds))
    assert row.high == pytest.approx(max(seeds))


def test_the_papers_row_is_below_ours(frame):
    shown = measures_shown(frame)
    heldout = shown[shown.task == "heldout"].set_index("step")
    assert list(heldout.index) == ["base", "Zero", "Zero, paper", "Dev1", "Dev2", "Dev3", "R1", "R1, paper"]
    assert heldout.accuracy["Zero, paper"] == "77.9 %"
    assert heldout.accuracy["R1, paper"] == "79.8 %; 97.3 %"
    assert heldout.length["R1, paper"] == DASH
    assert heldout["language consistency"]["R1"].startswith("0.9")
    assert heldout["gold"]["R1"] == DASH  # no measure of that task


def test_a_number_of_the_paper_at_another_scale_is_not_there(run, numbers, ladder, frame):
    assert "1" not in set(frame.published)
    everywhere = [
        {k: v for k, v in entry.items() if k != "scales"} for entry in run.recipe.layers.content["published"]
    ]
    found = measures(changed(run, published=everywhere), numbers, ladder)
    dev1 = found[(found.step == "Dev1") & (found.measure == "accuracy")]
    assert list(dev1.published) == ["1", ""]


def test_a_measure_that_only_the_paper_names_has_a_column(run, numbers, ladder):
    entry = {"what": "cons@64", "value": 86.7, "source": "x", "metric": "heldout/maj@4", "at": "zero/after"}
    found = measures(changed(run, published=[entry]), numbers, ladder)
    row = found[found.measure == "maj@4"]
    assert list(row.step) == ["Zero"]
    shown = measures_shown(found).set_index(["task", "step"])["maj@4"]
    assert shown["heldout", "Zero"] == DASH
    assert shown["heldout", "Zero, paper"] == "86.7"


def test_tasks_apart_say_what_the_paper_measured(frame):
    found = {task: (shown, theirs) for task, shown, theirs in by_task(frame)}
    assert list(found) == ["heldout", "requests"]
    shown, theirs = found["requests"]
    assert list(shown.columns) == ["", "accuracy", "gold", "win rate", "length"]
    assert theirs == ["ArenaHard, R1 (Nature Tab. 3)"]


def test_without_numbers_there_are_the_papers_alone(run, numbers, ladder):
    found = measures(run, numbers[:0], ladder)
    assert not found.models.any()
    assert set(measures_shown(found)[measures_shown(found).step == "R1"].accuracy) == {DASH}
