"""The opening of an environment by its name: a class of a user, or the client of a library."""

from collections.abc import Callable

from encore import own_code
from encore.worlds.environment_class import OfClass, check_arguments
from encore.worlds.environment_session import Arguments, Source


def opened(name: str, arguments: Arguments, seconds: float) -> Source:
    """Return the environment that a task names; `seconds`: the longest time that its making may take.

    Raises UserError if there is no such environment, or if it does not take the arguments.
    """
    if name == "openenv":
        # imported here, because few have the library
        from encore.worlds.environment_openenv import OpenEnv

        return _made(OpenEnv, name, arguments, seconds)
    if name == "verifiers":
        # imported here, because few have the library
        from encore.worlds.environment_verifiers import Verifiers

        return _made(Verifiers, name, arguments, seconds)
    return OfClass(name, arguments, seconds)


def _made(library: Callable[..., Source], name: str, arguments: Arguments, seconds: float) -> Source:
    check_arguments(library, name, arguments)
    return own_code.bounded(f"environment {name}", library, seconds)(**arguments)
