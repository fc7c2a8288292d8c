"""The case in the manual, docs/judge.md: two public logs of verl, judged as the manual says.

verl_ppo.csv has two columns of github.com/eric-haibin-lin/verl-data at commit f07af32, gsm8k/
Qwen2.5-0.5B-bsz256_2-prompt512-resp256-0.538.log and -prompt1024-resp512-0.567.log, read by this package.
"""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from analysis.study import document
from analysis.study.judge import judge, lines

CASE = Path(__file__).parent / "verl_ppo.csv"
PAGE = (
    (Path(__file__).parents[3] / "docs/judge.md").read_text(encoding="utf-8").partition("## A real case")[2]
)
SHOWN = re.compile(r"^```(?:yaml|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The study that the manual shows, with the numbers of the logs in one file."""
    folder = tmp_path_factory.mktemp("case")
    study = yaml.safe_load(SHOWN.findall(PAGE)[0])
    assert study["runs"]["train"]["files"] == ["logs/{arm}-{seed}.log"]
    study["runs"]["train"]["files"] = [CASE.name]
    shutil.copy(CASE, folder)
    (folder / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False), encoding="utf-8")
    return judge(document.load(folder / "study.yaml"), folder)


def test_the_manual_shows_what_the_command_says(judged):
    assert SHOWN.findall(PAGE)[1].splitlines() == lines(judged)


def test_one_run_an_arm_decides_nothing_and_has_no_interval(judged):
    assert {verdict.word for verdict in judged.verdicts} == {"open"}
    assert all(verdict.low != verdict.low for verdict in judged.verdicts)


def test_how_the_score_is_read_matters_more_than_what_is_claimed(judged):
    """The manual's point: at 0.02 one reading holds and another does not, of the same two runs."""
    estimates = [verdict.estimate for verdict in judged.verdicts]
    assert min(estimates) < 0.02 < max(estimates)
