"""The key `like` of a scale: another scale, whose layers, arms, claims and published numbers it has too."""

from collections.abc import Mapping

from encore.errors import UserError, known
from encore.recipe.strict_yaml import Content


def chain(like: Mapping[str, str | None], scale: str) -> list[str]:
    """Return the scale, the scale that it is like, the scale that the latter is like, and so on.

    `like` names for each scale the scale that it is like, or None. The list ends before a repetition and
    before a scale that does not exist.
    """
    names = [scale]
    while (after := like.get(names[-1])) is not None and after in like and after not in names:
        names.append(after)
    return names


def of_content(content: Content) -> dict[str, str | None]:
    """Return for each scale of a recipe's content the scale that it is like, or None."""
    return {name: said.get("like") for name, said in content["scales"].items()}


def layers(content: Content, scale: str) -> list[Content]:
    """Return the layers of a scale: first the layers of the scale that it is like."""
    names = chain(of_content(content), scale)
    return [content["scales"][name] for name in reversed(names)]


def lacks(content: Content, scale: str, arm: str) -> bool:
    """Return whether the scale, or a scale that it is like, sets an arm to null and no later layer has it."""
    said = [layer["arms"][arm] for layer in layers(content, scale) if arm in layer.get("arms", {})]
    return bool(said) and said[-1] is None


def check_likeness(like: Mapping[str, str | None]) -> None:
    """Raise UserError if a scale is like one that does not exist, or like itself through others."""
    for scale, other in like.items():
        if other is None:
            continue
        place = f"scales.{scale}.like"
        known(place, [other], [name for name in like if name != scale], "other scale")
        names = chain(like, scale)
        if (first := like.get(names[-1])) in names:
            raise UserError(f"{place}: {' is like '.join([*names, first])}: they go in a circle")


def alike(content: Content) -> Content:
    """Return the content with each list of `scales` extended by the scales that are `like` one in it.

    A scale that is `like: cpu` thus has the arms, claims and published numbers of cpu. If it lacks an arm, it
    lacks the claims and numbers of this arm too.
    """
    like = of_content(content)
    chains = {scale: chain(like, scale) for scale in like}

    def named(entry: Content) -> Content:
        if "scales" not in entry:
            return entry
        every = [
            name
            for scale in entry["scales"]
            for name in (scale, *(other for other, names in chains.items() if scale in names))
            if name in entry["scales"] or not any(lacks(content, name, arm) for arm in _arms(entry))
        ]
        return {**entry, "scales": list(dict.fromkeys(every))}

    sections = {key: content[key] for key in ("claims", "arms", "published") if key in content}
    return {**content} | {
        key: [named(entry) for entry in entries]
        if isinstance(entries, list)
        else {name: named(entry) for name, entry in entries.items()}
        for key, entries in sections.items()
    }


def _arms(entry: Content) -> set[str]:
    """Return the arms that a claim compares, or with which a published number is compared."""
    test = entry.get("test", {})
    places = [entry.get("at"), test.get("of"), test.get("against")] if isinstance(test, dict) else []
    return {place.partition("/")[0] for place in places if isinstance(place, str)}
