"""Stage `sample`: completions of the policy are drawn, which another stage labels."""

from typing import Annotated, Literal

from pydantic import Field

from encore.recipe.kinds.stage import Drawing


class SampleStage(Drawing):
    """A stage that draws completions of the policy."""

    product = "samples"
    needs_answers = False
    required = ("task", "template")

    run: Literal["sample"]
    needs: dict[Literal["policy"], str] = {}
    # number of problems to leave out at the start, because earlier rounds have used them
    skip: Annotated[int, Field(ge=0)] = 0
