"""An item of a list as part of a text."""

import pytest

from encore.data.columns import names, text

ROW = {"text": "Double it.", "test_list": ["assert f(1) == 2", "assert f(2) == 4"], "a.0": "own", "empty": []}


@pytest.mark.parametrize(
    ("key", "read", "columns"),
    [
        ("{text} {test_list.0}", "Double it. assert f(1) == 2", ["text", "test_list"]),
        ("{test_list.1}!", "assert f(2) == 4!", ["test_list"]),
        ("{test_list.2}!", "!", ["test_list"]),  # "" for what is missing
        ("{empty.0}!", "!", ["empty"]),
        ("a.0", "own", ["a.0"]),  # a column of just this name
    ],
)
def test_an_item_of_a_list(key, read, columns):
    assert text(ROW, key) == read
    assert names(key) == columns
