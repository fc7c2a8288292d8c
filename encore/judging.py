"""The Python interface to verdicts: it judges claims on the user's numbers as a recipe's report does.

    from encore.judging import Claim, Test, judge

    test = Test(metric="reward", of="a", against="b", direction="higher", margin=0.02)
    verdicts = judge(frame, {"a-ends-higher": Claim(says="A ends higher.", test=test, primary=True)})

`frame` is a pandas DataFrame with the columns arm, seed, metric and value. `encore judge` and the reports of
recipes call the same functions, which are in `analysis`.

| name                                        | what it is                                                   |
|---------------------------------------------|--------------------------------------------------------------|
| `judge(frame, claims)`                      | the verdicts, in the order of the claims; `.frame()`: a table|
| `Claim`, `Test`                             | what is claimed, and the comparison by which it is judged    |
| `Verdict`                                   | a verdict: word, difference, interval, seeds, look and more  |
| `UserError`                                 | the error of numbers or claims that cannot be judged         |
| `LOOKS`                                     | the numbers of seeds at which claims are judged              |
| `look_levels(alpha)`                        | the one-sided level of each look; together they spend alpha  |
| `tost(differences, bound)`                  | p-value of equivalence, by two one-sided t tests             |
| `bootstrap_interval(values)`                | interval of a mean of few seeds, by the expanded percentile  |
| `detectable(differences)`                   | the smallest effect that this number of seeds would find     |
| `boschloo(collapsed, runs, others, theirs)` | p-value against equal rates of collapse, by an exact test    |
| `clopper_pearson(collapsed, runs)`          | exact interval of a rate of collapse                         |
| `probability_of_improvement(arm, other)`    | how likely a run of one arm is better, over several tasks    |
| `performance_profile(arm, levels)`          | share of an arm's runs above each level, over several tasks  |
"""

from analysis.statistics.improvement import performance_profile, probability_of_improvement
from analysis.statistics.intervals import detectable
from analysis.statistics.intervals import interval as bootstrap_interval
from analysis.statistics.proportions import boschloo, clopper_pearson
from analysis.statistics.sequential import levels as look_levels
from analysis.study.document import StudyClaim as Claim
from analysis.study.frame import judge
from analysis.verdicts.claims import Verdict
from analysis.verdicts.rule import tost
from encore.errors import UserError
from encore.recipe.claims import Test
from encore.recipe.looks import LOOKS

__all__ = [
    "LOOKS",
    "Claim",
    "Test",
    "UserError",
    "Verdict",
    "bootstrap_interval",
    "boschloo",
    "clopper_pearson",
    "detectable",
    "judge",
    "look_levels",
    "performance_profile",
    "probability_of_improvement",
    "tost",
]
