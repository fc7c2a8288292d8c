"""Text that becomes markup."""

import pytest

from analysis.page import markup


@pytest.mark.parametrize(
    ("line", "comment"),
    [
        ("lr: 1.0e-4   # Table 2", "# Table 2"),
        ("# a whole line", "# a whole line"),
        ('title: "no # here"', ""),
        ("url: https://x.org/#part", ""),
    ],
)
def test_comments_of_the_recipe_are_marked(line, comment):
    assert line[markup.comment_start(line) :] == comment
