"""The model that all parts of a recipe inherit, and the small types of their fields.

A model is strict ("3e-6" is not a number, 16.0 is not a whole number), frozen, and has no other keys than its
fields.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import NoneType
from typing import Annotated, Any, ClassVar, NoReturn, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from encore.errors import UserError, nearest
from encore.recipe.mistakes import NOTHING, OF_TYPE, WORDS, words

T = TypeVar("T")
Mistake = tuple[str, str]  # the key ("" for the part itself), and its mistake in words
LONGEST_HINT = 400  # characters of a hint; the arguments of a trainer have 150 names, which are too many


class Machine:
    """A marker of fields that describe the machine of a job; such fields are not part of the lineage."""


class Model(BaseModel):
    """A part of a recipe.

    Null is not a value: in a layer it deletes a key of the layers below, and elsewhere it is refused. Only in
    a subclass with `takes_null` is it a value, for the fields that can be None.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
    takes_null: ClassVar[bool] = False

    @model_validator(mode="wrap")
    @classmethod
    def _told(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Return the model of `value`. Raises ValidationError with the mistakes of all keys, in words."""
        mistakes: list[InitErrorDetails] = []
        if isinstance(value, Mapping):
            mistakes = list(cls.further_mistakes(value))
            if not cls.takes_null and None in value.values():
                value = {key: NOTHING if content is None else content for key, content in value.items()}
        try:
            made = handler(value)
        except ValidationError as error:
            mistakes += [cls._worded(details) for details in error.errors(include_url=False)]
        if mistakes:
            raise ValidationError.from_exception_data(cls.__name__, mistakes)
        return made

    @cached_property
    def said(self) -> dict[str, Any]:
        """The keys that the recipe sets, with their values, as a mapping that can be written as JSON."""
        return self.model_dump(exclude_unset=True)

    @classmethod
    def further_mistakes(cls, value: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """Yield the mistakes in `value`, the mapping to validate, that the types of fields cannot show."""
        yield from ()

    @classmethod
    def _worded(cls, details: ErrorDetails) -> InitErrorDetails:
        """Return an error of pydantic, reworded if the words need the fields of this class."""
        kind, place, value = details["type"], details["loc"], details["input"]
        if len(place) == 1 and kind == "extra_forbidden":
            return mistake(place, unknown_key(str(place[0]), list(cls.model_fields)), value)
        if len(place) == 1 and cls.takes_null and (kind in OF_TYPE or kind == "literal_error"):
            nullable = NoneType in get_args(cls.model_fields[str(place[0])].annotation)
            return mistake(place, words(details, nullable), value)
        if kind == WORDS:
            return mistake(place, details["msg"], value)
        return InitErrorDetails(type=kind, loc=place, input=value, ctx=details.get("ctx", {}))


def mistake(place: tuple[str | int, ...], words: str, value: Any = None) -> InitErrorDetails:
    """Return an error for pydantic with the text `words`; `place` leads from the model to the value."""
    return InitErrorDetails(type=PydanticCustomError(WORDS, words), loc=place, input=value)


def below(place: str, mistakes: Iterator[Mistake]) -> Iterator[Mistake]:
    """Yield mistakes, and the lines of a raised UserError, with `place` put before their keys."""
    try:
        for key, told in mistakes:
            yield ".".join(filter(None, (place, key))), told
    except UserError as error:
        for line in error.lines:
            key, _, told = line.partition(": ")
            yield ".".join(filter(None, (place, key))), told


def unknown_key(key: str, valid: list[str]) -> str:
    """Return the message for an unknown key, with the nearest valid key or, if they are few, all of them."""
    hint = nearest(key, valid) if valid else ""
    return f"unknown key{hint if len(hint) < LONGEST_HINT else ''}"


def refuse(told: str) -> NoReturn:
    """Raise pydantic's error with this message; call it in a validator."""
    raise PydanticCustomError(WORDS, told)


def present(value: T | None) -> T:
    """Return `value`, which the rules of a model have already shown to be set."""
    assert value is not None
    return value


def matching(pattern: str, description: str) -> Callable[[str], str]:
    """Return a validator of texts that match `pattern` entirely; its error says "expected `description`"."""

    def matched(text: str) -> str:
        if not re.fullmatch(pattern, text):
            refuse(f'expected {description}, got "{text}"')
        return text

    return matched


# a dot is allowed only before a digit, because a name such as report.html could be the file of a page
NAME = r"[a-z0-9](?:[a-z0-9-]|\.[0-9])*"
IDENTIFIER = r"[a-z][a-z0-9_]*"
A_NAME = 'a name of lower-case letters, digits, "-" and, before a digit, "."'
AN_IDENTIFIER = 'a name of lower-case letters, digits and "_"'

# a key of YAML, so it is text
OptimizerStep = Annotated[str, AfterValidator(matching("0|[1-9][0-9]*", "a number of optimizer steps"))]
Items = Annotated[tuple[T, ...], Field(strict=False)]  # a list in the YAML
Some = Annotated[tuple[T, ...], Field(strict=False, min_length=1)]
Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0)]
AboveZero = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
PartOfAll = Annotated[float, Field(gt=0, lt=1)]
# NumPy takes seeds below 2^32, and a stage adds to its seed: ten thousand for each member of an ensemble
Seed = Annotated[int, Field(ge=0, le=1_000_000)]
Identifier = Annotated[str, AfterValidator(matching(IDENTIFIER, AN_IDENTIFIER))]
Name = Annotated[str, AfterValidator(matching(NAME, A_NAME))]
SOME_TEXT = AfterValidator(matching(r"(?s).*\S.*", "some text"))
Said = Annotated[str, Field(min_length=1), SOME_TEXT]
Line = Annotated[str, Field(min_length=1, max_length=500), SOME_TEXT]
HubName = Annotated[
    str, AfterValidator(matching(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)?", 'a Hub name such as "org/name"'))
]
Revision = Annotated[
    str, AfterValidator(matching("[0-9a-f]{40}", "the 40 hexadecimal digits of a Hub commit"))
]
