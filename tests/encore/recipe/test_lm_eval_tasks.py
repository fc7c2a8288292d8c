"""The settings of lm-eval's tasks, read from their files, are those that lm-eval itself loads."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from lm_eval_tasks import on_rows

from encore.errors import UserError
from encore.recipe import lm_eval_tasks
from evals import benchmarks

ROW = {"question": "1+1=", "answer": "#### 2", "problem": "1", "solution": "1"}
ROWS = {"train": [ROW] * 9, "test": [ROW] * 2}


@pytest.mark.parametrize("name", ["gsm8k", "gsm8k_cot"])
def test_they_are_those_of_the_loaded_task(tmp_path, name):
    settings = lm_eval_tasks.settings(name)
    manager = benchmarks.TaskManager(include_path=on_rows(tmp_path, name, ROWS), include_defaults=False)
    loaded = manager.load([name])["tasks"][name]
    assert settings.generates == (loaded.OUTPUT_TYPE == "generate_until")
    assert settings.fewshot == loaded.get_config("num_fewshot")
    assert settings.filters == [each["name"] for each in loaded.get_config("filter_list")]
    assert settings.metrics == [*loaded.aggregation()]


def test_a_file_has_what_it_includes_and_its_own_over_it():
    base, long = lm_eval_tasks.settings("arc_easy"), lm_eval_tasks.settings("arc_challenge")  # includes it
    assert long == base
    assert not base.generates
    assert base.metrics == ["acc", "acc_norm"]


def test_the_limit_of_a_completion_is_the_tasks_or_lm_evals():
    assert lm_eval_tasks.settings("ifeval").tokens == 1280
    assert lm_eval_tasks.settings("gsm8k").tokens == lm_eval_tasks.TOKENS == 256


def test_each_file_is_read_once_if_no_task_has_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package, names = SimpleNamespace(submodule_search_locations=[str(tmp_path)]), ("aime", "aime/hard", "arc")
    for folder in (tmp_path / "tasks" / name for name in names):
        folder.mkdir(parents=True)
        (folder / "a.yaml").write_text("task: aime24\n", encoding="utf-8")
    monkeypatch.setattr(lm_eval_tasks, "find_spec", lambda name: package)
    opened, plain = [], Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, **how: opened.append(path) or plain(path, **how))
    with pytest.raises(UserError, match='no task "aime99"; did you mean "aime24"'):
        lm_eval_tasks.find("aime99", tmp_path / "none")
    assert len(opened) == len({*opened}) == len(names)
