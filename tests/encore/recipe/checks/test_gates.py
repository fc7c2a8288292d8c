"""Section `gates` and the claims that need them; a mistake is one line."""

from typing import Any

import pytest

from encore.errors import UserError

GATE: dict[str, Any] = {"metric": "last_fifth/entropy", "of": "base-recipe/grpo"}


def with_gate(folder, needs="entropy >= 0.5", **changes: Any):
    """Recipe `paper` with the gate `entropy`, which its claim needs."""
    folder.set("paper", "gates", {"entropy": {k: v for k, v in (GATE | changes).items() if v is not None}})
    folder.set("paper", "claims/lifts/needs", needs)
    return folder


@pytest.mark.parametrize(
    ("needs", "changes"),
    [
        ("entropy >= 0.5", {}),
        (["entropy >= 0.5", "entropy <= 2"], {"about": "there is something to lose"}),
        ("entropy within 20%", {"target": 1.5}),
        ("entropy >= 0.5", {"target": 1.5}),
        ("entropy >= 0.5", {"against": "hot/grpo"}),
        ("entropy >= 0.5", {"against": "hot/grpo", "against_metric": "mean/ratio/deviation"}),
        ("entropy >= 0.5", {"of": "hot/after", "metric": "heldout/accuracy"}),
    ],
)
def test_sound(folder, needs, changes):
    with_gate(folder, needs, **changes).load()


@pytest.mark.parametrize(
    ("needs", "changes", "message"),
    [
        ("entropi >= 0.5", {}, 'claims.lifts.needs: unknown gate "entropi"; did you mean "entropy"?'),
        ("entropy > 0.5", {}, 'claims.lifts.needs: unknown relation ">" in "entropy > 0.5"; did you'),
        (["entropy >= 0.5", "ratio"], {}, "claims.lifts.needs: expected GATE >= NUMBER, GATE <= NUMBER or"),
        ([], {}, "claims.lifts.needs: must not be empty"),
        (3, {}, "claims.lifts.needs: expected text or a list, got 3"),
        ("entropy within 20%", {},
         "gates.entropy.target: expected a number other than 0, because claims.lifts needs the gate"),
        ("entropy within 20%", {"target": 0}, "gates.entropy.target: expected a number other than 0"),
        ("entropy >= 1", {"target": "six"}, "gates.entropy.target: expected a number, got the text"),
        ("entropy >= 1", {"metric": None}, "gates.entropy.metric: missing"),
        ("entropy >= 1", {"off": "x"}, 'gates.entropy.off: unknown key; did you mean "of"?'),
        ("entropy >= 1", {"of": "base-recipe/grpoo"},
         'gates.entropy.of: unknown checkpoint or stage "grpoo"; did you mean "grpo"?'),
        ("entropy >= 1", {"against": "hott/grpo"}, 'gates.entropy.against: unknown arm "hott"; did you'),
        ("entropy >= 1", {"against": "hot/grpo", "against_metric": "entropy"},
         "gates.entropy.against_metric: expected a final number of stage hot/grpo"),
        ("entropy >= 1", {"against_metric": "mean/entropy"}, "gates.entropy.against_metric: it goes with"),
        ("entropy >= 1", {"of": "only-cpu/grpo"},
         'gates.entropy.of: arm "only-cpu" does not exist at scale paper'),
    ],
)  # fmt: skip
def test_mistake(folder, needs, changes, message):
    with pytest.raises(UserError) as error:
        with_gate(folder, needs, **changes).load()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_gate_is_measured_at_the_scales_of_its_claims_alone(folder):
    folder.set("paper", "claims/lifts/scales", ["cpu"])
    with_gate(folder, of="only-cpu/grpo").load()


def test_a_need_without_any_gates(folder):
    folder.set("paper", "claims/lifts/needs", "entropy >= 0.5")
    with pytest.raises(UserError, match=r'claims\.lifts\.needs: unknown gate "entropy"'):
        folder.load()


def test_a_gate_that_no_claim_needs(folder):
    with_gate(folder)
    folder.set("paper", "gates/idle", GATE)
    with pytest.raises(UserError, match=r"gates\.idle: no claim needs it; remove it"):
        folder.load()


def test_a_gate_has_a_name_without_a_dash(folder):
    with_gate(folder)
    folder.set("paper", "gates/en-tropy", GATE)
    with pytest.raises(UserError, match=r'gates: expected a name of lower-case .*, got "en-tropy"'):
        folder.load()
