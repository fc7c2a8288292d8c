"""The layers of a recipe, and their merging into the stages and evaluations of an arm at a scale."""

from dataclasses import dataclass, field

from encore.errors import Mistakes, UserError, known
from encore.recipe import evals, likeness, protocols
from encore.recipe.kinds import KINDS, check_layer
from encore.recipe.strict_yaml import Content


@dataclass(frozen=True)
class Layers:
    """The content of all files of a recipe, which must not change: merged sections are computed once."""

    content: Content
    _merged: dict[tuple[str, str, str], Content] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def of_scale(self, scale: str) -> list[Content]:
        """Return the layers of a scale, lowest first: the scale that it is `like` lies below it."""
        return likeness.layers(self.content, scale)

    def lacks(self, scale: str, arm: str) -> bool:
        """Return whether the scale sets an arm to null, so that the arm does not exist there."""
        return likeness.lacks(self.content, scale, arm)

    def without_kind(self, scale: str, arm: str) -> list[str]:
        """Return the stages without `run`: a layer deleted them, and a layer above set some keys again."""
        return [name for name, stage in self.merged(scale, arm, "stages").items() if "run" not in stage]

    def merged(self, scale: str, arm: str, section: str) -> Content:
        """Return a section (`stages` or `evals`), merged for the arm at the scale.

        Later layers win: the recipe's own, the scale's, the arm's, the scale's for the arm. If a scale is
        like another, the other's layer comes before its own. Below all of them is the protocol that an
        evaluation task names.
        """
        key = (scale, arm, section)
        if key not in self._merged:
            at = self.of_scale(scale)
            of_arm = [layer.get("arms", {}).get(arm) or {} for layer in at]
            merged = self.content[section]
            for layer in (*at, self.content["arms"][arm], *of_arm):
                merged = merge(merged, layer.get(section, {}))
            if section == "evals" and "tasks" in merged:
                merged["tasks"] = {name: protocols.completed(task) for name, task in merged["tasks"].items()}
            self._merged[key] = merged
        return self._merged[key]


def merge(base: Content, over: Content) -> Content:
    """Return `base` with `over` merged on top: mappings are merged, other values replaced, null deletes."""
    merged = dict(base)
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            below = merged.get(key)
            merged[key] = merge(below if isinstance(below, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def check_nulls(content: Content) -> None:
    """Raise UserError for null in a recipe's own `evals`, the lowest layer, where it can delete nothing."""
    for section in ("checkpoints", "models", "tasks"):
        for name, value in content["evals"].get(section, {}).items():
            if value is None:
                raise UserError(f"evals.{section}.{name}: null, but no layer below has the key; remove it")


def check_layers(content: Content) -> None:
    """Raise UserError with the mistakes of each single layer, in its stages and evaluations."""
    kinds, mistakes = list(KINDS), Mistakes()
    for place, layer in {"": content, **_overlays(content)}.items():
        with mistakes.gather():
            evals.check_layer(_without_nulls(layer.get("evals", {})), f"{place}.evals".lstrip("."))
    for name, stage in content["stages"].items():
        with mistakes.gather():
            known(f"stages.{name}.run", [stage["run"]], kinds, "stage kind")
            check_layer(stage, stage["run"], f"stages.{name}")
    for place, layer in _overlays(content).items():
        for name, overlay in layer.get("stages", {}).items():
            with mistakes.gather():
                known(f"{place}.stages", [name], list(content["stages"]), "stage", as_key=True)
                if overlay and overlay.get("run", "") is None:
                    raise UserError(f"{place}.stages.{name}.run: expected text, got nothing")
                pruned = _without_nulls(overlay or {})
                run = pruned.get("run", content["stages"][name]["run"])
                if run != content["stages"][name]["run"]:
                    known(f"{place}.stages.{name}.run", [run], kinds, "stage kind")
                if run in kinds:
                    check_layer(pruned, run, f"{place}.stages.{name}")
    mistakes.tell()


def _overlays(content: Content) -> dict[str, Content]:
    """Return path -> layer for all layers above the lowest: of scales, of arms, and of arms at a scale."""
    layers = {
        f"{section}.{name}": layer
        for section in ("scales", "arms")
        for name, layer in content[section].items()
    }
    for scale, said in content["scales"].items():
        of_scale = said.get("arms", {})
        arms = [arm for arm, layer in content["arms"].items() if scale in layer.get("scales", [scale])]
        known(f"scales.{scale}.arms", of_scale, arms, f"arm at scale {scale}", as_key=True)
        layers |= {
            f"scales.{scale}.arms.{arm}": layer for arm, layer in of_scale.items() if layer is not None
        }
    return layers


def _without_nulls(layer: Content) -> Content:
    """Return a layer without the keys that it sets to null."""
    return {k: _without_nulls(v) if isinstance(v, dict) else v for k, v in layer.items() if v is not None}
