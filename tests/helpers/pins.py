"""What is pinned though libraries decide it: where it changes, the failure names the upgrade behind it.

pins.json has of each pin the versions that it was made with; the pinned value itself too, where no other file
of the repository is the pin. A pin of bits also names the machine, for another one rounds otherwise.
"""

import json
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).with_name("pins.json")


def hold(name: str, found: Any, pinned: Any = None) -> None:
    """Fail unless `found` is `pinned` (default: the value in pins.json), and say what may have changed it.

    Skips a pin of bits on another kind of machine than its own.
    """
    pin = json.loads(FILE.read_text(encoding="utf-8"))[name]
    if pin.get("machine", machine()) != machine():
        pytest.skip(f"the bits of {name} are those of {pin['machine']}, this is {machine()}")
    assert found == pin.get("value", pinned), (
        f"{name} is not what is pinned: {_because(pin['made with'])}. If it should be so, pin it anew "
        f"(CONTRIBUTING.md) and write into {FILE.name}: {json.dumps(anew(pin, found))}"
    )


def because(name: str) -> str:
    """`torch is 2.14.0, the pin is of 2.13.0`, for each library of a pin that is another by now."""
    return _because(json.loads(FILE.read_text(encoding="utf-8"))[name]["made with"])


def _because(made_with: dict[str, str]) -> str:
    told = [
        f"{library} is {now}, the pin is of {then}"
        for library, then in made_with.items()
        if (now := installed(library)) != then
    ]
    return "; ".join(told) or "all its libraries are of the pinned versions, so the change is ours"


def anew(pin: dict[str, Any], found: Any) -> dict[str, Any]:
    """The pin as it would be written now."""
    value = {"value": found} if "value" in pin else {}
    where = {"machine": machine()} if "machine" in pin else {}
    return {"made with": {library: installed(library) for library in pin["made with"]}} | where | value


def installed(library: str) -> str:
    """Its version without the build (`+cpu`), which machine() tells."""
    try:
        return metadata.version(library).partition("+")[0]
    except metadata.PackageNotFoundError:
        return "not installed"


def machine() -> str:
    """What decides how sums are rounded: the processor's maker, torch's build, the widest vectors it uses."""
    import torch  # late: most pins need none

    build = torch.__version__.partition("+")[2] or "default"
    return f"{platform.machine()} {_maker()} {torch.backends.cpu.get_cpu_capability()}, torch's {build} build"


def _maker() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("vendor_id")), "")
