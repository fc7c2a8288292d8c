"""The report finds an arm's rows of the conformance table by the name that its settings have."""

import observe
import pytest
from cases import CASES

from analysis.training.objective_names import name
from encore.recipe import kinds


@pytest.mark.parametrize("case", CASES)
def test_settings_have_the_name_of_their_case(case):
    config = {"run": "grpo", "args": observe.arguments("one-update", **CASES[case].args), **CASES[case].keys}
    assert name(kinds.read_stage(config)) == case
