"""Data that replace a stage's product, so that later stages can be tried all the same.

After two steps a policy may get nothing right, and then there is nothing to keep or to rank. Its completions
then stand in for the completions of the trained policy.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from encore.data import demonstrations, preferences, samples
from encore.forecast.trial import Config
from encore.recipe.kinds.label import VALIDATION
from encore.runtime import files, sentinel
from encore.stages.label import as_preferences

# beginnings of the messages by which stages say that nothing is left
EMPTIED = {"rejection_sampling": ("0 of ",), "label": ("health check pairs", "keep: ")}


def emptied(kind: str, failure: str) -> bool:
    """Return whether a stage failed because none of its data was left, and not for another reason."""
    return failure.startswith(EMPTIED.get(kind, ()) or "\n")


def of_stage(config: Config, inputs: Mapping[str, Path], folder: Path) -> Path | None:
    """Return the metrics.json of a stand-in for the product of a stage that was run in `folder`.

    Returns None if the policy wrote nothing, or if the preferences to be labelled anew have no pair.
    """
    if config["run"] == "rejection_sampling":
        lines = (folder / "completions.jsonl").read_text(encoding="utf-8").splitlines()
        return of_completions(config, [{"question": "", **json.loads(line)} for line in lines], folder)
    if sentinel.read_sentinel(inputs["data"]).get("kind") == "label":
        return None
    rows = samples.load(inputs["data"])
    if config.get("keep", "preferences") == "preferences":
        order = [[-float(i) for i in range(len(row["completions"]))] for row in rows]
        ranked, _ = preferences.usable(as_preferences(rows, order, config.get("validation", VALIDATION)))
        return of_preferences(config, ranked, folder) if ranked else None
    return of_completions(
        config, [{**row, "completion": text} for row in rows for text in row["completions"]], folder
    )


def of_completions(config: Config, rows: Sequence[Mapping[str, Any]], folder: Path) -> Path | None:
    """Save the rows that have a text as demonstrations; return their metrics.json, None without any."""
    written = [row for row in rows if row["completion"].strip()]
    if not written:
        return None
    demonstrations.save(written, folder / "stand-in")
    return _vouched(config, folder)


def of_preferences(config: Config, rows: Sequence[preferences.Preference], folder: Path) -> Path:
    """Save the rows as preferences; return their metrics.json."""
    preferences.save(rows, folder / "stand-in")
    return _vouched(config, folder)


def _vouched(config: Config, folder: Path) -> Path:
    """Write and return a metrics.json for `folder`/stand-in, as a stage with this config would."""
    product, out = folder / "stand-in", folder / "stand-in.json"
    made = {"model": str(product), "digest": sentinel.digest(product), "files": sentinel.sizes(product)}
    files.write_json(out, {**made, "kind": config["run"], "config": dict(config)})
    return out
