"""The guard of what is pinned: which library's upgrade changed it."""

import json
from importlib import metadata

import pins
import pytest

PINS = json.loads(pins.FILE.read_text())


@pytest.fixture
def upgraded(monkeypatch):
    """Another version of matplotlib, and no pandas."""
    true = metadata.version

    def version(name: str) -> str:
        if name == "pandas":
            raise metadata.PackageNotFoundError(name)
        return "99.1" if name == "matplotlib" else true(name)

    monkeypatch.setattr(metadata, "version", version)


def test_a_changed_pin_names_the_library_and_both_versions(upgraded):
    made_with = PINS["pages of the records"]["made with"]
    with pytest.raises(AssertionError) as error:
        pins.hold("pages of the records", "<svg>", "<svg >")
    assert (
        "pages of the records is not what is pinned: "
        f"matplotlib is 99.1, the pin is of {made_with['matplotlib']}; "
        f"pandas is not installed, the pin is of {made_with['pandas']}. " in str(error.value)
    )
    assert '"matplotlib": "99.1"' in str(error.value)  # what to write
    pins.hold("pages of the records", "<svg>", "<svg>")  # an upgrade alone changes nothing


def test_where_no_library_changed_it_was_the_code():
    with pytest.raises(AssertionError, match=r"all its libraries are of the pinned versions, so the change"):
        pins.hold("pages of the records", "a", "b")


def test_bits_are_pinned_on_their_own_kind_of_machine_alone(monkeypatch):
    name = next(name for name, pin in PINS.items() if "machine" in pin)
    monkeypatch.setattr(pins, "machine", lambda: PINS[name]["machine"])
    pins.hold(name, PINS[name]["value"])
    with pytest.raises(AssertionError, match=f"^{name} is not what is pinned"):
        pins.hold(name, "sha256:other")
    monkeypatch.setattr(pins, "machine", lambda: "a RISC-V")
    with pytest.raises(pytest.skip.Exception, match="this is a RISC-V"):
        pins.hold(name, "sha256:other")


def test_every_library_of_a_pin_is_here():
    """Else a misspelt one would be told of whatever happens."""
    for name, pin in PINS.items():
        assert "not installed" not in map(pins.installed, pin["made with"]), name
