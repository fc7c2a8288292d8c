"""The layers of a recipe, each by itself: the keys and types of the file, and of each stage by its kind.

A mistake is one `UserError` line: where, what is wrong, what would be right. `resolved` checks what the
layers come to once they are laid on each other.
"""

from collections.abc import Mapping

from encore.errors import Mistakes, UserError, known
from encore.recipe import evals
from encore.recipe.checks import dials
from encore.recipe.claims import FRONTIER, Claim, Test
from encore.recipe.document import Document, ScaleFile, read
from encore.recipe.kinds import KINDS, check_layer
from encore.recipe.layers import alike
from encore.recipe.looks import FOLDER
from encore.recipe.recipe import REPORTS
from encore.recipe.schema import check, definition

PRIMARY = 3  # claims that a recipe may put first at a scale


def check_shape(content: Mapping, model: type[Document | ScaleFile]) -> None:
    """The keys and types of a file, all but the stages."""
    mistakes = Mistakes()
    with mistakes.gather():
        read(content, model)
    layers = {"": content}
    for section in ("scales", "arms"):
        parts = content.get(section)
        layers |= (
            {f"{section}.{name}": part for name, part in parts.items()} if isinstance(parts, Mapping) else {}
        )
    for place, layer in layers.items():
        if isinstance(layer, Mapping) and isinstance(layer.get("evals"), Mapping):
            with mistakes.gather():
                check(
                    layer["evals"], definition("evals"), [*place.split("."), "evals"] if place else ["evals"]
                )
    mistakes.tell()


def check_names(spec: Mapping) -> None:
    """The names that everything but the stages gives and uses, and its claims and dials."""
    mistakes = Mistakes()
    for check_one in (_check_names, _check_lists):
        with mistakes.gather():
            check_one(spec)
    with mistakes.gather():
        document = read(alike(spec), Document)
        with mistakes.gather():
            _check_claims(list(document.claims.values()), list(document.scales))
        dials.check(document)
    mistakes.tell()


def _check_names(spec: Mapping) -> None:
    arms, scales = list(spec["arms"]), list(spec["scales"])
    for scale, content in spec["scales"].items():
        _check_like(spec["scales"], scale, content)
    if "evals" in spec["stages"]:
        raise UserError("stages.evals: a reserved name; call the stage something else")
    for arm in arms:
        # The reports and looks are folders beside the arms' in results/, as is `evals` beside stages'.
        if arm in (*REPORTS, FOLDER, FRONTIER):
            raise UserError(f"arms.{arm}: a reserved name; call the arm something else")
        known(f"arms.{arm}.scales", spec["arms"][arm].get("scales", []), scales, "scale")
    if arms[0] != "base-recipe":
        raise UserError(f'arms.{arms[0]}: the first arm must be "base-recipe", the paper\'s own')


def _check_lists(spec: Mapping) -> None:
    arms = list(spec["arms"])
    known("quickstart.arms", spec.get("quickstart", {}).get("arms", []), arms, "arm")
    known("ladder", spec.get("ladder", []), arms, "arm")
    lacking = spec.get("leave_one_out", {"full": arms[0], "without": []})
    known("leave_one_out.full", [lacking["full"]], arms, "arm")
    known("leave_one_out.without", lacking["without"], arms, "arm")
    for section in ("checkpoints", "models", "tasks"):
        for name, value in spec["evals"].get(section, {}).items():
            if value is None:
                raise UserError(f"evals.{section}.{name}: nothing is below it to be deleted; remove it")
    for scale in spec.get("without", {}):
        if scale in spec["scales"]:
            raise UserError(f"without.{scale}: the recipe has this scale; remove one of the two")


def _check_like(scales: Mapping, scale: str, content: Mapping) -> None:
    """That a scale is like another one, which says itself what it is."""
    if "like" in content:
        others = [name for name, other in scales.items() if "like" not in other]
        known(f"scales.{scale}.like", [content["like"]], others, "scale that is like no other")


def _check_claims(claims: list[Claim], scales: list[str]) -> None:
    """Check that each claim names scales there are, and says which effect would matter."""
    primary: dict[str, list[str]] = {scale: [] for scale in scales}
    for claim in claims:
        path = f"claims.{claim.id}"
        known(f"{path}.scales", claim.scales or (), scales, "scale")
        if claim.test.against_metric is not None and claim.test.against is None:
            raise UserError(f"{path}.test.against_metric: it goes with against, which is missing")
        _check_smallest_effect(claim.test, f"{path}.test")
        for scale in claim.scales or scales if claim.primary else ():
            if len(primary[scale]) == PRIMARY:
                raise UserError(
                    f"{path}.primary: a fourth primary claim at scale {scale}; at most {PRIMARY}, "
                    f"and {', '.join(primary[scale])} are"
                )
            primary[scale].append(claim.id)


def _check_smallest_effect(test: Test, path: str) -> None:
    """Check that a claim has one smallest effect that would matter: its own, or a margin above 0."""
    if test.direction == "equal" and test.smallest_effect is not None:
        raise UserError(f"{path}.smallest_effect: of a claim of equality the margin is it; remove it")
    if test.direction != "equal" and not test.matters:
        raise UserError(
            f"{path}.smallest_effect: missing; with margin 0 nothing says which difference would not matter"
        )


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
