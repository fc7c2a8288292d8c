"""lm-eval's own task files on rows that a test writes: nothing is downloaded."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from encore.recipe import lm_eval_tasks

# an evaluation task of a recipe
GSM8K = {"lm_eval": "gsm8k", "samples": 1, "temperature": 0.0, "top_p": 1.0, "max_gen_toks": 8, "k": [1]}


def on_rows(folder: Path, name: str, splits: Mapping[str, Sequence[Mapping[str, Any]]]) -> Path:
    """`folder`, with lm-eval's task `name` as it is installed, but for its data: {split: rows}."""
    files = {}
    for split, rows in splits.items():
        files[split] = str(folder / f"{name}.{split}.jsonl")
        Path(files[split]).write_text("\n".join(map(json.dumps, rows)))
    kwargs = {"data_files": files, "cache_dir": str(folder / "cache")}
    (folder / f"{name}.yaml").write_text(
        f"include: {lm_eval_tasks.find(name)}\ntask: {name}\ndataset_path: json\ndataset_name: null\n"
        f"dataset_kwargs: {json.dumps(kwargs)}\n"
    )
    return folder
