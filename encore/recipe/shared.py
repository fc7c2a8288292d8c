"""The stages and problems that the seeds of a published record share; its recipe may have changed since."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Shared:
    """The stages that all seeds of a record share, and whether they share held-out problems."""

    stages: Mapping[tuple[str, str], int]  # (recipe, stage) -> the seed that trained it
    problems: bool  # whether every seed was asked the same problems of a world
