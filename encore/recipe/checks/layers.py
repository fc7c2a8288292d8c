"""The layers of a recipe, each by itself: the keys and types of the file, and of each stage by its kind.

A mistake is one `UserError` line: where, what is wrong, what would be right. `resolved` checks what the
layers come to once they are laid on each other.
"""

from collections.abc import Mapping

from encore.errors import Mistakes, UserError, known
from encore.recipe import evals
from encore.recipe.document import sound
from encore.recipe.kinds import KINDS, check_layer
from encore.recipe.layers import alike


def check_names(content: Mapping) -> None:
    """Check the names that everything but the stages gives and uses, and its claims and dials."""
    mistakes = Mistakes()
    for section in ("checkpoints", "models", "tasks"):
        for name, value in content["evals"].get(section, {}).items():
            if value is None:
                mistakes.note(f"evals.{section}.{name}: nothing is below it to be deleted; remove it")
    if document := sound(alike(content)):
        for place, told in document.mistakes():
            mistakes.note(f"{place}: {told}")
    mistakes.tell()


def check_layers(spec: Mapping) -> None:
    """Each layer's keys of each stage, by the stage's kind and its config dataclass."""
    kinds, mistakes = list(KINDS), Mistakes()
    for place, layer in {"": spec, **_overlays(spec)}.items():
        with mistakes.gather():
            evals.check_layer(_without_nulls(layer.get("evals", {})), f"{place}.evals".lstrip("."))
    for name, stage in spec["stages"].items():
        with mistakes.gather():
            known(f"stages.{name}.run", [stage["run"]], kinds, "stage kind")
            check_layer(stage, stage["run"], f"stages.{name}")
    for place, layer in _overlays(spec).items():
        for name, overlay in layer.get("stages", {}).items():
            with mistakes.gather():
                known(f"{place}.stages", [name], list(spec["stages"]), "stage", as_key=True)
                if overlay and overlay.get("run", "") is None:
                    raise UserError(f"{place}.stages.{name}.run: expected text, got nothing")
                pruned = _without_nulls(overlay or {})
                run = pruned.get("run", spec["stages"][name]["run"])
                if run != spec["stages"][name]["run"]:
                    known(f"{place}.stages.{name}.run", [run], kinds, "stage kind")
                if run in kinds:
                    check_layer(pruned, run, f"{place}.stages.{name}")
    mistakes.tell()


def _overlays(spec: Mapping) -> dict[str, Mapping]:
    """Path -> layer: the scales, the arms, and what a scale says of an arm."""
    layers = {
        f"{section}.{name}": layer for section in ("scales", "arms") for name, layer in spec[section].items()
    }
    for scale, content in spec["scales"].items():
        own = content.get("arms", {})
        arms = [arm for arm, layer in spec["arms"].items() if scale in layer.get("scales", [scale])]
        known(f"scales.{scale}.arms", own, arms, f"arm at scale {scale}", as_key=True)
        layers |= {f"scales.{scale}.arms.{arm}": layer for arm, layer in own.items() if layer is not None}
    return layers


def _without_nulls(layer: Mapping) -> dict:
    """An overlay less the keys it deletes."""
    return {k: _without_nulls(v) if isinstance(v, Mapping) else v for k, v in layer.items() if v is not None}
