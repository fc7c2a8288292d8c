"""The sweeps of a run: groups of arms that differ only in one number."""

import json

from analysis.numbers.run import Run
from analysis.numbers.settings import of_stages


def sweeps(run: Run) -> dict[str, list[str]]:
    """Return each swept setting of a stage -> the arms that differ only in this number, sorted by it.

    A second group of arms for one setting is named `key (2)`. Inputs from stages that different arms own are
    no difference, as long as the stages have the same name: their settings are compared by themselves.
    """
    by_arm = {}
    for arm in run.arms:
        settings = {key: value.partition("@")[0] if ".needs." in key and "/" not in value else value
               for key, value in of_stages(run, arm)}  # fmt: skip
        by_arm[arm] = settings
    keys = dict.fromkeys(key for settings in by_arm.values() for key in settings)
    by_setting: dict[str, list[str]] = {}
    for key in keys:
        if len({settings.get(key) for settings in by_arm.values()}) < 2:
            continue
        alike: dict[str, list[tuple[float, str]]] = {}
        for arm, settings in by_arm.items():
            if (value := _number(settings.get(key))) is not None:
                rest = json.dumps([pair for pair in sorted(settings.items()) if pair[0] != key])
                alike.setdefault(rest, []).append((value, arm))
        for group in (group for group in alike.values() if len(group) > 1):
            count = sum(name.startswith(key) for name in by_setting) if key in by_setting else 0
            by_setting[f"{key} ({count + 1})" if count else key] = [arm for _, arm in sorted(group)]
    return by_setting


def _number(text: str | None) -> float | None:
    """Return a setting's text as a number; None if it is no number."""
    try:
        value = json.loads(text or "null")
    except ValueError:
        return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
