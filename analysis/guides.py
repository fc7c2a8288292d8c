"""The page results/published/guides.md: statements that guides make, beside the claims that test them.

guides.yaml lists the statements, each with the claims that test it. Every verdict comes from a record.
"""

from collections.abc import Sequence
from pathlib import Path

from analysis.statements import Answers, Group, table

FILE = Path(__file__).with_suffix(".yaml")
HEAD = """# What guides say, and what we found

Guides and lectures on reinforcement learning for language models state much and measure little. Each
statement stands beside the claims that ask it here, at scale `cpu`: models of a tenth of a million to half a
million parameters on procedural tasks. [What the words mean](../../docs/verdicts.md). A claim may ask the
opposite of a statement: its own sentence stands beside it. Written by `python -m analysis.publish --index`
from [`analysis/guides.yaml`](../../analysis/guides.yaml).
"""


def page(topics: Sequence[Group], answered: Answers) -> str:
    """Return the page as Markdown: a table for each topic."""
    tables = [f"## {topic.name}\n\n{table('a guide', topic.statements, answered)}" for topic in topics]
    return "\n".join([HEAD, *tables])
