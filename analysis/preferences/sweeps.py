"""Settings that several arms differ in by one number."""

import json

from analysis.numbers.run import Run
from analysis.numbers.settings import of_stages


def sweeps(run: Run) -> dict[str, list[str]]:
    """Setting of a stage -> the arms whose stages differ in this number alone, in its order.

    `key (2)` where there are several. Where a stage of the recipe itself is needed, its own settings say what
    differs, not contender owns it.
    """
    by_arm = {}
    for arm in run.arms:
        own = {key: value.partition("@")[0] if ".needs." in key and "/" not in value else value
               for key, value in of_stages(run, arm)}  # fmt: skip
        by_arm[arm] = own
    keys = dict.fromkeys(key for own in by_arm.values() for key in own)
    found: dict[str, list[str]] = {}
    for key in keys:
        if len({own.get(key) for own in by_arm.values()}) < 2:
            continue
        alike: dict[str, list[tuple[float, str]]] = {}
        for arm, own in by_arm.items():
            if (value := _number(own.get(key))) is not None:
                rest = json.dumps([pair for pair in sorted(own.items()) if pair[0] != key])
                alike.setdefault(rest, []).append((value, arm))
        for group in (group for group in alike.values() if len(group) > 1):
            name = key if key not in found else f"{key} ({sum(k.startswith(key) for k in found) + 1})"
            found[name] = [arm for _, arm in sorted(group)]
    return found


def _number(text: str | None) -> float | None:
    """The number a setting is; None of any other."""
    try:
        value = json.loads(text or "null")
    except ValueError:
        return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
