"""Small data sets, written as they lie on the Hub, from the columns and types of a shape."""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]
TURNS = [{"content": "str", "role": "str"}]
DATA = {  # a task of a recipe, of a data set that is nowhere
    "hub": "org/data",
    "revision": "a" * 40,
    "split": "test",
    "question": "q",
    "answer": "a",
    "verifier": "math",
}


@dataclass(frozen=True)
class Shape:
    """`columns`: name -> "str", "int", "float", "bool", a list of one such, or a struct of them.

    `files`: where a split lies, if not in data/<split>-00000-of-00001.parquet; one file of rows each.
    `subsets`: those that recipes name, each in a folder of its name, `default` in data.
    """

    revision: str
    columns: Mapping[str, Any]
    rows: Sequence[Row]
    splits: Sequence[str]
    subsets: Sequence[str] = ()
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)


def turns(*texts: str) -> list[Row]:
    return [{"content": text, "role": ("user", "assistant")[i % 2]} for i, text in enumerate(texts)]


def features(columns: Any) -> Any:
    """The `datasets` feature, or features, that a Shape's `columns` say."""
    from datasets import Features, Value

    names = {"str": "string", "int": "int64", "float": "float64", "bool": "bool"}
    if isinstance(columns, str):
        return Value(names[columns])
    if isinstance(columns, list):
        return [features(columns[0])]
    return Features({name: features(one) for name, one in columns.items()})


def write(name: str, shape: Shape, folder: Path, own: Callable[[str], Sequence[Row]] | None = None) -> Path:
    """Write a data set of this shape under `folder`; the path to load it from.

    `own`: split -> the rows of each of its files, in place of the shape's.
    """
    from datasets import Dataset

    place = folder / name.replace("/", "--")
    for split in shape.splits:
        rows = own(split) if own else shape.rows
        data = Dataset.from_list([*rows], features=features(shape.columns))
        for file in shape.files.get(split, [f"data/{split}-00000-of-00001.parquet"]):
            path = place / file
            path.parent.mkdir(parents=True, exist_ok=True)
            if file.endswith(".parquet"):
                data.to_parquet(path)
                continue
            lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
            path.write_bytes(gzip.compress(lines) if file.endswith(".gz") else lines)
    if shape.subsets:
        folders = {subset: "data" if subset == "default" else subset for subset in shape.subsets}
        write_card(
            place,
            {
                subset: {split: f"{folders[subset]}/{split}-*" for split in shape.splits}
                for subset in shape.subsets
            },
        )
    return place


def write_card(place: Path, subsets: Mapping[str, Mapping[str, str]]) -> None:
    """Write the card of a data set: where the files of each subset's splits lie."""
    configs = [
        {
            "config_name": subset,
            "data_files": [{"split": split, "path": path} for split, path in paths.items()],
        }
        for subset, paths in subsets.items()
    ]
    (place / "README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")  # JSON is YAML too
