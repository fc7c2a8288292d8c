"""The five lines of summary.txt."""

import pandas as pd
from toy_run import changed

from analysis.numbers.table import COLUMNS, final
from analysis.verdicts import summary


def test_a_sweep_without_evaluations_says_so(run):
    numbers = pd.DataFrame(columns=COLUMNS)
    lines = summary.lines(changed(run, evals={}, claims=[]), numbers, [], {})
    assert lines[1] == "Accuracy (no model is evaluated): \N{EN DASH}"


def test_the_summary_speaks_of_gold(rlhf, rlhf_table):
    lines = summary.lines(rlhf, final(rlhf_table), [], {})
    assert len(lines) == 5
    assert lines[1].startswith("Gold reward on heldout, base-recipe, base")
    assert "win rate: 0.2" in lines[1]
