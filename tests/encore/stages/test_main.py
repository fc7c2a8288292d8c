"""The one command of all stages: `python -m encore.stages <kind> …`."""

import gc
import importlib
import subprocess
import sys
from types import SimpleNamespace

import pytest
from stage_runs import PRETRAIN, command

from encore.errors import UserError
from encore.recipe.kinds import KINDS
from encore.stages.__main__ import main, parse

ARGUMENTS = command("pretrain", PRETRAIN)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_module_that_runs(kind: str):
    assert callable(importlib.import_module(f"encore.stages.{kind}").run)


def test_an_unknown_kind_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert main(["pretrian"]) == 2
    line = 'error: stage: unknown kind "pretrian"; did you mean "pretrain"?\n'
    assert capsys.readouterr() == (line, line)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--config", "{", "^--config: not JSON: "),
        ("--config", "[]", "^--config: expected a JSON object$"),
        ("--input", "policy", "^--input policy: expected ROLE=METRICS_JSON$"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(option: str, value: str, says: str):
    with pytest.raises(UserError, match=says):
        parse(["pretrain", *ARGUMENTS, option, value])


@pytest.mark.slow
def test_torch_waits_for_the_environment():
    """torch and the Hugging Face libraries read their variables when they are imported."""
    code = "import sys, encore.stages.__main__; print({'torch', 'transformers', 'trl'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_no_stage_searches_its_imports_for_garbage(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def run(*_):
        raise UserError(f"{gc.get_freeze_count()} objects")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib, "import_module", lambda name: SimpleNamespace(run=run))
    gc.unfreeze()
    assert main(["pretrain", *ARGUMENTS]) == 2
    gc.unfreeze()
    assert int(capsys.readouterr().err.split()[-2]) > 10_000
