"""`encore reward stress`: options, the child process in which a reward runs, tables and exit statuses."""

import csv
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from encore.commands import command_line, reward_stress, stress_job
from encore.commands.stress_job import Asked
from encore.errors import UserError

MODULE = """
import os, signal

def contains(completions, answer, **columns):
    print("a reward may print")
    return [float(right in text) for right, text in zip(answer, completions)]

def leaves(completions, **columns):
    if "NaN" in completions[0]:
        os._exit(0)
    return [1.0] * len(completions)

def stuck(completions, **columns):
    if "NaN" in completions[0]:
        os.kill(os.getpid(), signal.SIGVTALRM)  # as encore/own_watch.py ends what cannot be interrupted
    return [1.0] * len(completions)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MODULE)
    rows = [json.dumps({"q": f"{n}+{n}=", "a": str(2 * n)}) for n in range(10, 19)]
    (tmp_path / "my.jsonl").write_text("\n".join(rows))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(reward_stress.__file__).parents[2]), prepend=os.pathsep)
    return tmp_path


def asked(**options) -> Asked:
    empty = {"reward": None, "data": None, "recipe": None, "samples": None}
    return Asked(**(empty | {"question": "q", "answer": "a", "scale": "cpu"} | options))


def stress(*words: str):
    columns = ("--question", "q", "--answer", "a")
    return CliRunner().invoke(command_line.app, ["reward", "stress", *words, "--data", "my.jsonl", *columns])


def test_help_names_the_command_and_its_options():
    shown = CliRunner().invoke(command_line.app, ["reward", "-h"]).output
    assert "  stress  Show which responses a reward pays for, the wrong ones first.\n" in shown
    words = CliRunner().invoke(command_line.app, ["reward", "stress", "-h"]).output
    assert len(words.splitlines()) < 30
    assert {"--data", "--recipe", "--samples", "--out"} <= {*words.split()}


@pytest.mark.slow
def test_a_table_is_printed_and_written(here, capfd):
    done = stress("mine:contains", "--out", "t.csv")
    assert done.exit_code == 0, done.output
    assert "a reward may print" not in done.stdout
    assert "pays for a longer answer that contains the right one" in done.stdout
    rows = [*csv.DictReader(Path("t.csv").read_text().splitlines())]
    paid = sum(row["kind"] == "wrong" and float(row["paid"]) > 0 for row in rows)
    assert f"{paid} of 29 kinds of wrong responses are paid" in done.stdout
    assert {row["task"] for row in rows} == {"my.jsonl"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mine:leaves", "ends the process at NaN: exit status 0"),
        ("mine:stuck", "hangs at NaN: not to be interrupted"),
    ],
)
def test_a_reward_that_ends_its_process_has_one_line_and_the_table_until_then(here, name, words):
    done = stress(name)
    assert done.exit_code == 1
    assert done.stderr == f"error: {name} {words}\n"
    assert "an empty response" in done.stdout


@pytest.mark.slow
def test_a_mistake_that_the_child_finds_is_the_command_s(here):
    done = stress("mine:contain")
    assert isinstance(done.exception, UserError)
    assert str(done.exception) == (
        'rewards.mine:contain: nothing is called "contain" in mine.py; did you mean "contains"?'
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "expected either --data FILE.jsonl or --recipe NAME"),
        ({"data": "my.jsonl", "recipe": "r1_zero"}, "expected either --data"),
        ({"data": "my.jsonl"}, "--data: name the reward: encore reward stress my_module:function"),
    ],
)
def test_options_that_do_not_go_together(options, words):
    with pytest.raises(UserError, match=words):
        reward_stress.stress(asked(**options), None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reward": "accuracy", "data": "lost.jsonl"}, r"task\.file: there is no file lost\.jsonl"),
        ({"reward": "acuracy", "data": "my.jsonl"}, 'unknown reward; did you mean "accuracy"'),
        ({"recipe": "r1_zer"}, 'unknown recipe "r1_zer"; did you mean "r1_zero"'),
        ({"recipe": "dpo"}, "dpo: no stage of its first arm pays rewards by rules at scale cpu"),
        ({"recipe": "instructgpt"}, "instructgpt: no stage of its first arm pays rewards by rules"),
        ({"recipe": "r1", "samples": "s.jsonl"}, "--samples: of which task"),
    ],
)
def test_mistakes_in_data_and_recipes(here, options, words):
    with pytest.raises(UserError, match=words):
        stress_job.parts(asked(**options))


def test_the_parts_of_a_recipe_are_its_first_arm_s_stages_and_domains(here):
    (part,) = stress_job.parts(asked(recipe="r1_zero"))
    assert (part.name, part.weights, part.seed) == ("r1_zero/grpo", {"accuracy": 1.0, "format": 1.0}, 1)
    assert part.part.problems
    (part,) = stress_job.parts(asked(recipe="r1_zero", reward="random"))
    assert part.weights == {"random": 1.0}
    names = [part.name for part in stress_job.parts(asked(recipe="r1"))]
    assert len(names) > 1


def test_the_newest_samples_of_a_recipe_s_first_arm_are_taken(here):
    for seed, time in ((1, 200), (2, 100)):
        file = Path(f"results/r1_zero/cpu/base-recipe/seed{seed}/evals/after.samples.jsonl")
        file.parent.mkdir(parents=True)
        file.touch()
        os.utime(file, (time, time))
    (part,) = stress_job.parts(asked(recipe="r1_zero"))
    assert part.samples == Path("results/r1_zero/cpu/base-recipe/seed1/evals/after.samples.jsonl")
    (part,) = stress_job.parts(asked(recipe="r1_zero", samples="s.jsonl"))
    assert part.samples == Path("s.jsonl")
