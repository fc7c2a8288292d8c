"""Tasks that name a data set, of the Hub or of one's own, and what is kept out of training prompts."""

import pytest

from encore.recipe.graph import Graph, Node

TASK = "stages/grpo/task"
KEYS = {"question": "q", "answer": "a", "verifier": "math"}
HUB = {"hub": "org/name", "revision": "a" * 40, "split": "train"}
HELDOUT = "evals/tasks/heldout/task"


@pytest.fixture
def own(folder, tmp_path):
    """The recipes, with a task of one's own file; and the file."""
    path = tmp_path / "mine.jsonl"
    path.write_text('{"q": "1+1", "a": 2}\n')
    folder.set("paper", TASK, {"file": str(path), **KEYS})
    return folder, path


def config(folder, stage="grpo", kind="stage"):
    graph = Graph(folder.load())
    node = Node("paper", "cpu", "base-recipe", 0, stage, kind)
    return graph.config(node), graph.lineage(node)


def test_a_file_is_pinned_by_its_content(own):
    folder, path = own
    before, lineage = config(folder)
    assert config(folder) == (before, lineage)
    assert len(before["task"]["sha256"]) == 64
    path.write_text('{"q": "1+2", "a": 3}\n')
    after, other = config(folder)
    assert after["task"]["sha256"] != before["task"]["sha256"]
    assert other != lineage


def test_a_model_in_a_folder_is_pinned_by_its_content(folder, tmp_path):
    weights = tmp_path / "model/model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(b"one")
    folder.remove("paper", "stages/grpo/needs")
    folder.set("paper", "stages/grpo/model", {"path": str(weights.parent)})
    folder.set("paper", "scales", {"cpu": {"about": "small"}})
    lineage = config(folder)[1]
    assert config(folder)[1] == lineage
    weights.write_bytes(b"two")
    assert config(folder)[1] != lineage


def test_own_code_is_pinned_by_its_content(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.py"
    file.write_text("def short(prompts, completions, **columns):\n    return [1.0 for _ in completions]\n")
    folder.set("paper", "stages/grpo/rewards", {"accuracy": 1.0, "mine:short": 0.5})
    before, lineage = config(folder)
    assert list(before["code"]) == ["mine:short"]
    file.write_text(file.read_text().replace("1.0", "2.0"))
    after, other = config(folder)
    assert after["code"] != before["code"]
    assert other != lineage
    folder.set("paper", "stages/grpo/rewards", {"mine:shrot": 0.5})
    says = 'stages.grpo.rewards.mine:shrot: nothing is called "shrot" in mine.py; did you mean "short"?'
    assert says in folder.mistake()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"split": "train"}, "stages.grpo.task.split: of a Hub dataset, and "),
        ({"revision": "a" * 40}, "stages.grpo.task.revision: of a Hub dataset, and "),
        ({"file": "lost.jsonl"}, "stages.grpo.task.file: there is no file lost.jsonl in "),
        (
            {"file": "mine.csv"},
            "stages.grpo.task.file: mine.csv: expected a file that ends in .jsonl or .parquet",
        ),
        ({"file": 3}, "stages.grpo.task.file: expected text, got 3"),
        ({"numbers": "n"}, "stages.grpo.task.numbers: of verifier countdown, not math; remove it"),
        ({"verifier": "countdown"}, "stages.grpo.task.numbers: missing"),
        (
            {"verifier": "countdown", "numbers": "n", "target": "t"},
            "stages.grpo.task.answer: of verifier math",
        ),
        ({"sha256": "0"}, "stages.grpo.task.sha256: a job is given it; remove it"),
        ({"questoin": "q"}, 'stages.grpo.task.questoin: unknown key; did you mean "question"?'),
    ],
)
def test_mistakes_of_a_file(own, change, message):
    folder, _ = own
    folder.specs["paper"]["stages"]["grpo"]["task"] |= change
    assert message in folder.mistake(3 if message.endswith("numbers: missing") else 1)


@pytest.mark.parametrize("key", [*HUB, *KEYS])
def test_a_hub_dataset_lacks_nothing(folder, key):
    task = HUB | KEYS
    folder.set("paper", TASK, task)
    folder.load()
    if key != "hub":
        folder.set("paper", TASK, {name: value for name, value in task.items() if name != key})
        assert f"stages.grpo.task.{key}: missing" in folder.mistake()


def test_countdown_has_two_columns_in_place_of_an_answer(folder):
    folder.set("paper", TASK, HUB | {"question": "Make {t} of {n}", "verifier": "countdown"})
    assert "stages.grpo.task.numbers: missing" in folder.mistake(2)  # and the target
    folder.specs["paper"]["stages"]["grpo"]["task"] |= {"numbers": "n", "target": "t"}
    folder.load()


def test_decontamination_names_the_evaluations_data_sets(own):
    folder, _ = own
    folder.set("paper", "stages/grpo/decontaminate", True)
    assert "stages.grpo.decontaminate: evals.tasks has no data set to keep out" in folder.mistake()
    folder.set("paper", HELDOUT, HUB | KEYS)
    with_heldout, lineage = config(folder)
    assert with_heldout["decontaminate"] == {"heldout": HUB | KEYS}
    folder.set("paper", f"{HELDOUT}/split", "test")
    assert config(folder)[1] != lineage
    folder.set("paper", TASK, {"world": "chain"})
    assert "stages.grpo.decontaminate: no task here is a data set" in folder.mistake()


def test_prompts_of_grpo_may_have_a_longest(folder):
    folder.set("paper", "stages/grpo/longest_prompt", 0)
    assert "stages.grpo.longest_prompt: expected at least 1, got 0" in folder.mistake()
    folder.set("paper", "stages/grpo/longest_prompt", 512)
    folder.load()
