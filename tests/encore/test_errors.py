"""What stands in a message of ours of an error that is not."""

import pytest

from encore.errors import first_line


@pytest.mark.parametrize(
    ("said", "line"), [("no such file\nat all", "no such file"), ("\n late\n", "late"), ("", "OSError")]
)
def test_one_line_of_an_error_whatever_it_says(said, line):
    assert first_line(OSError(said)) == line
