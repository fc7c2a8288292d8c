"""How many rows a plan counts of a data set."""

import pytest

from encore.forecast.rows import _of_slice


@pytest.mark.parametrize(
    ("split", "rows"),
    [
        ("test[:1100]", 1100),
        ("test[1100:1400]", 300),
        ("test", None),
        ("test[5:]", None),
        ("test[:-5]", None),
        ("a[:5]+b[:5]", None),
    ],
)
def test_the_rows_of_a_slice_are_told_by_its_ends(split, rows):
    assert _of_slice(split) == rows
