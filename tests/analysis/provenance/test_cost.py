"""The table of costs."""

from analysis.provenance import cost
from analysis.provenance.jobs import jobs


def test_nothing_shared_is_counted_twice(run):
    spent = cost.cost(jobs(run))
    assert spent.runs.iloc[-1] == 2 + 6 * 3  # two base models, six arms by three seeds
    assert spent.runs.iloc[:-1].sum() == spent.runs.iloc[-1]
