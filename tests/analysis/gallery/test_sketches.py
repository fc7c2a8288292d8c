"""The small pictures of the first page: of the record's own numbers, and small."""

import re
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from papers import GRAPH

from analysis.gallery import sketches
from analysis.numbers.recorded import folders
from analysis.numbers.run import Run
from analysis.verdicts import records

RECORDS = Path(__file__).parents[3] / "results/published"


def test_a_sketch_is_of_the_judged_seeds_and_of_known_arms(tmp_path):
    """Seeds of a dial, and an arm that the recipe no longer has, would be far outside."""
    run = Run(GRAPH, "gdpo", "cpu", tuple(GRAPH.recipes["gdpo"].arms("cpu")), ())
    dial, *_ = run.recipe.dial_seeds
    rows = [
        (arm, seed, "grpo", step, value + step / 100, value)
        for arm, seed, value in (
            (run.arms[0], 9999, 0.25),
            (run.arms[1], 9999, 0.5),
            (run.arms[0], dial, 77.0),
            ("arm-of-before", 9999, 88.0),
        )
        for step in range(0, 50, 2)
    ]
    columns = ["arm", "seed", "node", "step", "accuracy", "reward"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "curves.csv.xz", index=False)
    svg, caption = sketches.of(tmp_path, run)
    assert svg.count("<path") == 2
    assert caption.startswith("Accuracy in training, 0.2")
    assert caption.endswith(f"; 2 arms, {run.arms[0]} thick")
    least, most = re.search(r"(0\.2\d+) to (0\.9\d+);", caption).groups()
    assert (float(least), float(most)) == pytest.approx((0.25, 0.98), abs=0.03)
    for path in re.findall(r' d="M([^"]+)"', svg):
        points = [tuple(map(float, point.split(","))) for point in path.split()]
        assert len(points) == sketches.POINTS
        assert all(0 <= x <= sketches.WIDTH and 0 <= y <= sketches.HEIGHT for x, y in points)
        assert all(later < earlier for (_, earlier), (_, later) in pairwise(points))  # it rises


def test_a_record_without_curves_shows_where_its_arms_ended():
    record = RECORDS / "objectives-cpu"
    run = records.run_of(record, GRAPH)
    svg, caption = sketches.of(record, run)
    ended = pd.read_csv(record / "arms.csv").query("task == 'heldout' and checkpoint == 'after'")
    assert svg.count("<circle") == len(ended) == ended.arm.nunique()
    low, high = ended.accuracy_low.min(), ended.accuracy_high.max()
    assert caption == f"Accuracy on heldout at the end, {low:.3f} to {high:.3f}; {len(ended)} arms"


def test_a_record_that_evaluates_nothing_and_has_no_curves_has_no_sketch():
    record = RECORDS / "learning_rates-cpu"
    assert sketches.of(record, records.run_of(record, GRAPH)) is None


def test_an_arm_of_a_sketch_is_one_of_the_record():
    for record in folders(RECORDS):
        if sketch := sketches.of(record, run := records.run_of(record, GRAPH)):
            assert 0 < sketch.svg.count("stroke=") <= len(run.arms)
            assert len(sketch.svg) < 6000, record  # the first page has a megabyte for all
