"""A pocket calculator for unchecked text: a valid call is one operation on two whole numbers.

| call      | result                        |
|-----------|-------------------------------|
| `37*48`   | `1776`                        |
| `7/2`     | `7/2`                         |
| `37*48+5` | no result: two operations     |
| `37*`     | no result                     |
"""

from encore.worlds.expressions import work_out

ERROR = "error"  # the answer to a malformed call


def calculate(call: str) -> str | None:
    """Return the value of one operation on two whole numbers; None for any other text. Never raises."""
    work = work_out(call)
    return str(work.value) if work and len(work.numbers) == 2 else None
