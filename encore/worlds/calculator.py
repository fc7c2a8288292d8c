"""A pocket calculator for text that nobody has checked: one operation on two numbers a call.

| call      | result  |
|-----------|---------|
| `37*48`   | `1776`  |
| `7/2`     | `7/2`   |
| `37*48+5` | none: two operations |
| `37*`     | none    |
"""

from encore.worlds.expressions import work_out

ERROR = "error"  # what a malformed call is answered


def calculate(call: str) -> str | None:
    """The value of one operation on two whole numbers; None for any other text. Never raises."""
    work = work_out(call)
    return str(work.value) if work and len(work.numbers) == 2 else None
