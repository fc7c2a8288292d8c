"""The command `encore`: help without torch, recipes that run, models measured, asked and laid out."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import true_tokenizers
import typed
import yaml
from papers import RECIPES
from typer.testing import CliRunner

from encore.commands import command_line, doctor, measure, models, new
from encore.data import corpora
from encore.errors import UserError
from encore.recipe.load import load_sound
from encore.recipe.machine import FolderModel, HubModel
from encore.worlds import make, tokenizer

ROOT = Path(__file__).parents[3]
NAMES = ("r1_zero", "tiny_lm")


def encore(*words: str):
    done = CliRunner().invoke(command_line.app, [*words])
    if isinstance(done.exception, UserError):
        raise done.exception
    return done


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder like that of the checkout, with two recipes and nothing in results/."""
    shutil.copytree(ROOT / "recipes/presets", tmp_path / "recipes/presets")
    for name in NAMES:
        path = RECIPES[name].files.path
        (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / "recipes" / path.name)
    shutil.copy(ROOT / "Snakefile", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_help_fits_a_screen_and_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['encore', '-h']\n"
        "from encore.commands.command_line import app\n"
        "try: app()\n"
        "finally: print('LOADED', {'torch', 'trl', 'transformers', 'datasets', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "LOADED set()" in done.stdout
    shown = done.stdout.partition("LOADED")[0]
    assert len(shown.splitlines()) <= 25
    assert "..." not in shown.partition("Commands:")[2]  # a command's first sentence fits its line
    for name in ("new", "run", "list", "eval", "chat", "report", "watch", "judge", "power", "doctor", "push"):
        assert f"  {name} " in shown
        words = encore(name, "-h").output.splitlines()
        assert len(words) < 30, name


@pytest.mark.parametrize("world", new.WORLDS)
def test_a_new_recipe_is_sound_and_its_numbers_fit_together(here, world):
    assert "wrote mine.yaml" in encore("new", "mine", "--world", world).output
    recipes, broken = load_sound(user_file=Path("mine.yaml"))
    assert not broken
    mine = recipes["mine"]
    assert mine.arms("cpu") == ["base-recipe", "low-clip"]
    assert len(mine.layers.content["claims"]) == 1
    with pytest.raises(UserError, match=r"mine\.yaml: is there already"):
        encore("new", "mine")


@pytest.mark.slow
@pytest.mark.parametrize("world", new.WORLDS)
def test_what_the_base_of_a_new_recipe_reads_fits_into_it(here, world):
    """All 48,000 documents: the longest is one in ten thousand, and stops the training."""
    new.write("mine", new.Wanted(world))
    stage = load_sound(user_file=Path("mine.yaml"))[0]["mine"].layers.content["stages"]["pretrain"]
    words = tokenizer([make(stage["task"])])
    documents = corpora.documents(*typed.corpus(stage), stage["seed"])
    longest = max(map(len, words(["".join(text) for text in documents])["input_ids"])) + 1  # its end
    assert longest <= stage["model"]["max_position_embeddings"]


@pytest.mark.slow
def test_a_new_recipe_of_ones_own_data_reward_and_model(here, checkpoint):
    Path("my.jsonl").write_text('{"q": "1+1=", "a": "2"}\n')
    Path("taste.py").write_text("def short(completions, **_):\n    return [1.0 for _ in completions]\n")
    folder = json.loads(checkpoint.read_text())["model"]
    words = f"--data my.jsonl --question q --answer a --reward taste:short --model {folder}".split()
    encore("new", "own/mine.yaml", *words)
    stage = yaml.safe_load(Path("own/mine.yaml").read_text())["stages"]["grpo"]
    assert stage["task"] == {"file": "my.jsonl", "question": "q", "answer": "a", "verifier": "math"}
    assert stage["rewards"] == {"accuracy": 1.0, "format": 0.5, "taste:short": 1.0}
    assert stage["model"] == {"path": folder}
    assert not load_sound(user_file=Path("own/mine.yaml"))[1]
    with pytest.raises(UserError, match='nothing is called "long" in taste\\.py'):
        encore("new", "other", "--reward", "taste:long")
    with pytest.raises(UserError, match=r"file: there is no file lost\.jsonl"):
        encore("new", "other", "--data", "lost.jsonl")
    assert not Path("other.yaml").exists()


@pytest.mark.parametrize(
    ("typed", "ran"),
    [
        ("r1_zero", "--cores all r1_zero --config scale=cpu"),
        ("r1 --quickstart -n", "--cores all -n --config scale=cpu recipe=r1"),
        ("a/mine.yaml --arms x,y --seeds 0,2", "--cores all mine --config scale=cpu arms=x,y seeds=0,2 "
         "recipe=a/mine.yaml"),
        ("dpo --claims c --cores 2", "--cores 2 dpo --config scale=cpu claims=c"),
    ],
)  # fmt: skip
def test_run_is_snakemake(monkeypatch, typed, ran):
    called = []
    monkeypatch.setattr(os, "execve", lambda program, words, environment: called.append(words))
    encore("run", *typed.split())
    assert called == [[sys.executable, "-m", "snakemake", *ran.split()]]


def test_the_list_has_every_recipe_with_its_state(here, demo_result):
    output = encore("list").output
    assert {line.split()[0] for line in output.splitlines()[2:] if line[0] != " "} == {*NAMES}
    row = next(line for line in output.splitlines() if line.startswith("tiny_lm "))
    assert "1 of " in row


@pytest.fixture
def demo_result(here):
    path = here / "results/tiny_lm/cpu/base-recipe/seed0/pretrain/metrics.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")


@pytest.mark.parametrize(
    ("model", "form", "rate"),
    [
        (f"Qwen/Qwen2.5-0.5B-Instruct@{'a' * 40}", "chat", 2e-6),
        (f"Qwen/Qwen2.5-7B@{'a' * 40}", "template", 1e-6),
        (f"nobody/unknown-chat@{'a' * 40}", "chat", 5e-6),
    ],
)
def test_a_new_recipe_asks_a_model_as_its_kind_and_trains_it_as_its_size(here, model, form, rate):
    encore("new", "mine", "--model", model)
    recipe = yaml.safe_load(Path("mine.yaml").read_text())
    stage, task = recipe["stages"]["grpo"], recipe["evals"]["tasks"]["heldout"]
    assert {"chat", "template"} & stage.keys() == {form}
    assert task[form] == stage[form]
    assert stage["args"]["learning_rate"] == rate
    rollout = stage["args"]["per_device_train_batch_size"] * stage["args"]["steps_per_generation"]
    assert rollout % stage["args"]["num_generations"] == 0


def test_a_new_recipe_reads_from_a_folder_whether_its_model_chats(here, tmp_path):
    checkpoint = true_tokenizers.checkpoint("chatml", tmp_path / "chatting")
    encore("new", "mine", "--model", json.loads(checkpoint.read_text())["model"])
    assert "chat" in yaml.safe_load(Path("mine.yaml").read_text())["stages"]["grpo"]


def test_models_are_named(here, checkpoint):
    assert models.named(str(checkpoint)) == models.named(str(checkpoint.parent)) == checkpoint
    folder = json.loads(checkpoint.read_text())["model"]
    assert models.named(folder) == FolderModel(path=folder)
    assert models.named(f"org/name@{'a' * 40}") == HubModel(hub="org/name", revision="a" * 40)
    with pytest.raises(UserError, match=r"is named org/name@commit, with the 40 digits"):
        models.named("org/name@main")
    with pytest.raises(UserError, match=r"recipes: no config\.json in it"):
        models.named("recipes")
    assert models.named("qwen2.5-0.5b").name == "Qwen/Qwen2.5-0.5B"  # of recipes/presets
    with pytest.raises(UserError, match=r'did you mean "smollm2-135m-instruct"\?'):
        models.named("smollm-135m-instruct")
    with pytest.raises(UserError, match="math500: no such folder"):  # a data set
        models.named("math500")


@pytest.mark.slow
def test_a_model_is_measured_on_a_file_and_a_recipes_task(here, checkpoint, monkeypatch):
    Path("my.jsonl").write_text(
        '{"question": "1+1=", "answer": "2"}\n\n{"question": "2+1=", "answer": "3"}\n'
    )
    called = []

    def run(command, **_):
        called.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    assert (
        encore(
            "eval", str(checkpoint), "my.jsonl", "r1_zero/heldout", "gsm8k_cot:strict-match", "--items", "2"
        ).exit_code
        == 0
    )
    config = json.loads(called[0][called[0].index("--config") + 1])
    assert config["tasks"]["my"]["task"]["file"] == "my.jsonl"
    assert config["tasks"]["r1_zero_heldout"]["task"]["world"] == "chain"
    assert {task.get("items") for task in config["tasks"].values()} == {2}
    assert config["tasks"]["gsm8k_cot_strict_match"]["filter"] == "strict-match"
    with pytest.raises(UserError, match='no task "heldot"; did you mean "heldout"'):
        measure.measure(str(checkpoint), ["r1_zero/heldot"], measure.Asked(), Path("out"), 0)
    for task, told in {
        "gsm8k": "it has several filters; name one of them: gsm8k:strict-match, gsm8k:flexible-extract",
        "hellaswag": "it has several metrics; name one of them: hellaswag:acc, hellaswag:acc_norm",
        "hellaswag:acc_nrom": 'unknown filter or metric of hellaswag "acc_nrom"; did you mean "acc_norm"?',
        "hellaswag:acc:acc_norm": "hellaswag:acc:acc_norm: expected one metric, got acc and acc_norm",
        "gsm9k:strict-match": 'lm-eval has no task "gsm9k"; did you mean',
    }.items():
        with pytest.raises(UserError, match=re.escape(told)):
            measure.measure(str(checkpoint), [task], measure.Asked(), Path("out"), 0)


@pytest.mark.slow
def test_a_model_is_measured_for_real_and_answers(here, checkpoint):
    Path("my.jsonl").write_text('{"question": "1+1=", "answer": "2"}\n')
    words = [sys.executable, "-m", "encore"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*words, "eval", str(checkpoint), "my.jsonl", "--tokens", "64"], env=env, check=False
    )
    assert done.returncode == 0, next(Path("results/evals").rglob("eval.log")).read_text()
    (results,) = Path("results/evals").rglob("results.json")
    assert json.loads(results.read_text())["tasks"]["my"]["items"] == 1
    asked = [*words, "chat", str(checkpoint), "--prompt", "1+1=", "--tokens", "4"]
    assert subprocess.run(asked, env=env, check=False).returncode == 0


def test_an_evaluation_that_ran_out_of_memory_says_so(here, checkpoint, monkeypatch, capsys):
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, -9))
    assert measure.measure(str(checkpoint), ["r1_zero/heldout"], measure.Asked(), Path("out"), 0) == 9
    assert "failed: killed, as a system does that runs out of memory" in capsys.readouterr().err


def test_a_report_that_is_not_made(here):
    with pytest.raises(UserError, match=r"report\.html: not made yet; encore run r1_zero --scale cpu"):
        encore("report", "r1_zero")
    page = here / "results/r1_zero/cpu/report.html"
    page.with_suffix("").mkdir(parents=True)
    page.with_name("quickstart.html").write_text("")
    with pytest.raises(UserError, match=r"not made yet; .*; there is --which quickstart$"):
        encore("report", "r1_zero")
    page.write_text("")
    (page.with_suffix("") / "summary.txt").write_text("3 of 4 claims\n")
    assert encore("report", "r1_zero").output == "3 of 4 claims\nresults/r1_zero/cpu/report.html\n"


@pytest.fixture
def one_gpu(tmp_path, monkeypatch):
    """A machine with one GPU and nothing else on its PATH; the driver is too old for CUDA 13."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "nvidia-smi").write_text(
        '#!/bin/sh\ncase "$1" in *driver*) echo 550.54.15;; *) echo "NVIDIA H100, 81559 MiB, 4 MiB";; esac\n'
    )
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("torch.version.cuda", "13.0")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    return folder


def of_gpus() -> list[str]:
    return [str(line) for line in doctor.findings() if re.search("GPU|Triton", line.what)]


def test_the_doctor_finds_what_a_gpu_lacks(one_gpu, tmp_path, monkeypatch):
    there, driver, triton = of_gpus()
    assert there == "ok   GPUs: NVIDIA H100, 81559 MiB, 4 MiB"
    assert driver.startswith("WARN GPUs: torch cannot use them: the NVIDIA driver is 550.54.15, ")
    assert driver.endswith("is built for CUDA 13.0, which needs driver 580 or newer")
    assert triton.startswith("WARN Triton lacks a C compiler (gcc or clang) and Python.h (looked for in ")

    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    (one_gpu / "gcc").write_text("#!/bin/sh\n")
    (one_gpu / "gcc").chmod(0o755)
    (tmp_path / "Python.h").touch()
    assert [line[:4] for line in of_gpus()] == ["ok  "] * 3


def test_the_doctor_asks_nothing_of_a_machine_without_a_gpu(one_gpu):
    (one_gpu / "nvidia-smi").unlink()
    assert of_gpus() == ["-    GPUs: none that nvidia-smi knows; scale cpu needs none"]


def test_the_doctor_says_what_is_odd(monkeypatch, here):
    lines = [str(finding) for finding in doctor.findings()]
    assert any("this is a clone" in line for line in lines)
    Path("Snakefile").unlink()
    lines = [str(finding) for finding in doctor.findings()]
    assert any(f"uses the Snakefile, recipes and profiles in {ROOT}" in line for line in lines)
    monkeypatch.setattr(doctor, "requires", lambda name: ["torch==0.0.1", "nothing-of-the-kind==1"])
    odd = [str(finding) for finding in doctor.findings() if finding.good is False]
    assert any("torch" in line and "nothing-of-the-kind is missing" in line for line in odd)
