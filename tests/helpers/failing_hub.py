"""Prints, as JSON, what our loaders say of a loopback Hub that fails: case -> message, or what was read.

`python failing_hub.py FOLDER`, a process of its own: the Hub's clients read its address when imported.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hub_server import serving

SHORTEST = 0.05  # seconds
FIRST, SECOND, ABSENT = "a" * 40, "b" * 40, "d" * 40
MODELS = ("whole", "gated", "token", "busy", "cut", "unasked")
DATA = ("rows", "gated", "cut")
TABLE = '{"question": "What is 3+4?", "answer": "7"}\n'
CONFIGS = "---\nconfigs: [{config_name: main, data_files: [{split: train, path: train.jsonl}]}]\n---\n"


def shelve(hub: Any, folder: Path) -> None:
    """Serve MODELS, and DATA in two revisions: of 2 rows, then of 4."""
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"0123456789" * 100)
    for name in MODELS:
        hub.shelf.add("models", f"org/model-{name}", model, FIRST)
    for revision, rows in ((FIRST, 2), (SECOND, 4)):
        place = folder / f"data-{rows}"
        place.mkdir()
        (place / "train.jsonl").write_text(TABLE * rows)
        (place / "README.md").write_text(CONFIGS)
        for name in DATA:
            hub.shelf.add("datasets", f"org/data-{name}", place, revision)
        hub.shelf.add("datasets", "openai/gsm8k", place, revision)


def told(hub: Any, closed: Callable[[], None]) -> dict[str, Any]:
    """Return each case's outcome. `closed` ends the Hub. The clients' waits between tries are cut short."""
    plain = time.sleep
    time.sleep = lambda seconds: plain(min(seconds, SHORTEST))
    import datasets
    import evaluated
    import typed
    from huggingface_hub import close_session, constants

    from encore.data.hub import load
    from encore.errors import UserError
    from encore.models.language_model import Source, folder_of
    from evals import benchmarks

    def outcome(read: Callable[[], Any]) -> Any:
        try:
            return read()
        except UserError as error:
            return str(error)
        except Exception as error:
            return f"traceback: {type(error).__name__}: {error}"

    def model(name: str, revision: str = FIRST) -> Any:
        place = f"org/model-{name}"
        return outcome(lambda: sorted(os.listdir(folder_of(Source(place, revision, "")))))

    def rows(name: str, revision: str = FIRST, split: str = "train") -> Any:
        keys = {"hub": f"org/data-{name}", "revision": revision, "subset": "main", "split": split}
        task = typed.task(keys | {"question": "question", "answer": "answer", "verifier": "math"})
        return outcome(lambda: len(load(task, ["question"])))

    def benchmark() -> Any:
        keys = {"lm_eval": "gsm8k", "filter": "strict-match", "fewshot": 0, "samples": 1}
        keys |= {"temperature": 0.0, "top_p": 1.0, "max_gen_toks": 8, "k": [1]}
        return outcome(lambda: benchmarks.load(evaluated.task_of(**keys), 0) and "read")

    hub.gated += ["model-gated", "data-gated"]
    hub.fails |= {"model-token": 401, "model-busy": 503}
    hub.cuts |= {"model.safetensors": 10, "data-cut/resolve": 10, "openai/gsm8k/resolve": 10}
    cases: dict[str, Any] = {"model cut": model("cut")}
    hub.cuts.pop("model.safetensors")
    before = len(hub.asked)
    cases["model after the cut"] = model("cut")
    cases["asked after the cut"] = [line for line in hub.asked[before:] if line.startswith("GET")]
    cases |= {f"model {name}": model(name) for name in ("whole", "gated", "token", "busy", "missing")}
    cases["model revision"] = model("whole", ABSENT)
    cases |= {f"data {name}": rows(name) for name in ("rows", "gated", "cut", "missing")}
    cases["data revision"] = rows("rows", ABSENT)
    cases["benchmark cut"] = benchmark()
    hub.fails["datasets/org/data-rows"] = 503
    cases["data cached, busy"], cases["data busy"] = rows("rows"), rows("rows", SECOND)
    hub.fails.clear()
    cases["data second"] = rows("rows", SECOND)
    closed()
    close_session()  # a connection that is open would still be answered
    cases["model down"], cases["model cached, down"] = model("unasked"), model("whole")
    constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    cases["model offline"], cases["model cached, offline"] = model("unasked"), model("whole")
    cases["data cached, offline"], cases["data offline"] = rows("rows"), rows("rows", ABSENT)
    cases["data split, offline"] = rows("rows", split="tset")
    return cases


if __name__ == "__main__":
    with ExitStack() as stack:
        served = stack.enter_context(serving())
        os.environ.update(served.reading(Path(sys.argv[1]) / "home"))
        shelve(served, Path(sys.argv[1]))
        print(json.dumps(told(served, stack.close)))
