"""A recipe as its files have it, and what its layers come to in an arm at a scale: mappings, not types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from encore.recipe import protocols

Content = dict[str, Any]


@dataclass(frozen=True)
class Layers:
    """The content of all files of a recipe, which must not change: what it comes to is computed once."""

    content: Content
    _merged: dict[tuple[str, str, str], Content] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def of_scale(self, scale: str) -> list[Content]:
        """Return the layers of a scale: of the scale that it is like, and then its own."""
        own = self.content["scales"][scale]
        return [self.content["scales"][own["like"]], own] if "like" in own else [own]

    def lacks(self, scale: str, arm: str) -> bool:
        """Whether the scale says that an arm does not exist there."""
        said = [layer["arms"][arm] for layer in self.of_scale(scale) if arm in layer.get("arms", {})]
        return bool(said) and said[-1] is None

    def merged(self, scale: str, arm: str, section: str) -> Content:
        """Return a section (`stages` or `evals`) as the arm has it at the scale.

        Later layers win: the recipe's own, the scale's, the arm's, what the scale says of the arm; of a scale
        that is like another, the other's before its own. Below all of them is the protocol that an evaluation
        task names.
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


def alike(content: Mapping[str, Any]) -> Content:
    """Return the content in which each list of scales also names those that are like one in the list.

    So a scale that is `like: cpu` has the arms, claims and published numbers of cpu.
    """
    copies: dict[str, list[str]] = {}
    for scale, said in content["scales"].items():
        if "like" in said:
            copies.setdefault(said["like"], []).append(scale)

    def named(entry: Content) -> Content:
        if "scales" not in entry:
            return entry
        every = [name for scale in entry["scales"] for name in (scale, *copies.get(scale, ()))]
        return {**entry, "scales": list(dict.fromkeys(every))}

    sections = {key: content[key] for key in ("claims", "arms", "published") if key in content}
    return {**content} | {
        key: [named(entry) for entry in entries]
        if isinstance(entries, list)
        else {name: named(entry) for name, entry in entries.items()}
        for key, entries in sections.items()
    }


def merge(base: Content, over: Mapping[str, Any]) -> Content:
    """Return `base` with `over` laid on it: mappings merge, everything else replaces, null deletes."""
    merged = dict(base)
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = merge(below if isinstance(below, dict) else {}, value)
        else:
            merged[key] = value
    return merged
