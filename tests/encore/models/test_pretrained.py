"""A model's folder may bring Python code: it is never run, and nobody is asked whether it should be."""

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import stage_runs

from encore import worlds
from encore.errors import UserError
from encore.forecast import counting, probes
from encore.models import language_model, pretrained, reward_model
from encore.recipe.machine import FolderModel
from encore.recipe.shape import Shape

ROOT = Path(__file__).parents[3]
TOKENIZER = worlds.tokenizer([worlds.make(stage_runs.TASK)])
CODE = """
from pathlib import Path
Path({mark!r}).touch()
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
class Configuration(LlamaConfig):
    model_type = "odd"
class Model(LlamaForCausalLM):
    pass
class Tokenizer(PreTrainedTokenizerFast):
    pass
"""
OWN = {  # what the folder says of its own code
    "AutoConfig": "odd.Configuration",
    "AutoModelForCausalLM": "odd.Model",
    "AutoModelForSequenceClassification": "odd.Model",
    "AutoTokenizer": ["odd.Tokenizer", "odd.Tokenizer"],
}


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file that the folder's code touches."""
    return tmp_path / "executed"


@pytest.fixture
def odd(tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model's folder with code of its own; whoever asks on standard input is answered yes."""
    folder = tmp_path / "odd"
    model = language_model.build(Shape(hidden_size=32, layers=1), TOKENIZER, 0)
    language_model.save(model, TOKENIZER, folder, model.generation_config)
    for name, change in (
        ("config.json", {"auto_map": OWN, "model_type": "odd"}),
        ("tokenizer_config.json", {"auto_map": OWN, "tokenizer_class": "Tokenizer"}),
    ):
        facts = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(facts | change))
    (folder / "odd.py").write_text(CODE.format(mark=str(mark)))
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("sys.stdin", StringIO("y\n" * 99))
    return folder


def source(folder: Path) -> language_model.Source:
    return language_model.Source(str(folder), None, "")


def member(folder: Path) -> Any:
    shutil.copytree(folder, folder / "member0")
    return reward_model.load_member(folder, 0)


@pytest.mark.parametrize(
    "load",
    [
        lambda folder: language_model.load(source(folder)),
        lambda folder: language_model.load_tokenizer(source(folder)),
        lambda folder: pretrained.configuration(folder, str(folder)),
        lambda folder: reward_model.from_policy(source(folder), TOKENIZER, 0),
        member,
        lambda folder: counting.architecture(FolderModel(path=str(folder)), folder / "config.json"),
        lambda folder: probes.ends(source(folder), TOKENIZER, False),
    ],
    ids=["model", "tokenizer", "configuration", "critic", "member", "plan", "preflight"],
)
def test_code_of_a_folder_is_refused_in_one_line(load: Callable[[Path], Any], odd: Path, mark: Path):
    with pytest.raises(UserError) as error:
        load(odd)
    assert not mark.exists()
    assert "brings its own Python code (auto_map), which is never run" in str(error.value)
    assert "\n" not in str(error.value)
    assert str(odd) in str(error.value)


@pytest.mark.slow
def test_a_stage_asks_nothing_and_says_it_in_one_line(odd: Path, mark: Path, tmp_path: Path):
    """A `y` on standard input changes nothing."""
    config = stage_runs.GRPO | {"model": {"path": str(odd)}}
    command = [sys.executable, "-m", "encore.stages", "grpo", *stage_runs.command("grpo", config)]
    done = subprocess.run(command, cwd=tmp_path, input="y\n" * 99, capture_output=True, text=True)
    assert done.returncode == 2
    assert not mark.exists()
    (line,) = [line for line in done.stdout.splitlines() if "error: " in line]
    assert "its own Python code" in line
    assert not [word for word in ("Traceback", "y/N") if word in done.stdout + done.stderr]


EVALUATION = "--config {} --model x --name r/a/seed0/evals/after --out x.json --samples x.jsonl"


@pytest.mark.slow
@pytest.mark.parametrize(
    "job",
    [
        ("encore.stages.__main__", ["label", *stage_runs.command("label", {}, policy="missing.json")]),
        ("evals.evaluate", EVALUATION.split()),
    ],
    ids=["stage", "evaluation"],
)
def test_what_a_job_asks_on_standard_input_has_no_answer(job: tuple[str, list[str]], tmp_path: Path):
    """The job ends at its first mistake, and standard input is at its end."""
    module, arguments = job
    code = f"import os; from {module} import main; main({arguments!r}); print('read', os.read(0, 9))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, input="y\n", capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["read b''"], done.stderr


def test_nothing_of_a_model_is_loaded_but_by_the_one_loader():
    """GenerationConfig is data alone: transformers runs no code for it."""
    loaders = []
    for house in ("recipes", "evals", "analysis", "encore"):
        for path in (ROOT / house).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and node.attr == "from_pretrained":
                    loaders.append((path.relative_to(ROOT).as_posix(), ast.unparse(node.value)))
    assert sorted(loaders) == [
        ("encore/forecast/probes.py", "GenerationConfig"),
        ("encore/models/pretrained.py", "kind"),
    ]
