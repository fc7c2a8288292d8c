"""What rows of a recipe, its claims, gates and published numbers, name in their metrics."""

import re
from collections.abc import Iterable


def named_in(metrics: Iterable[str], form: re.Pattern[str]) -> list[str]:
    """The last group of `form` in each metric that has it, sorted: ["0.5"] of `updates_to/accuracy=0.5`.

    Each is as written, so that the metric can be found by its name again.
    """
    return sorted({match.groups()[-1] for name in metrics if (match := form.fullmatch(name))})
