"""The errors of the Hub's clients, in one line for a user that also says what to do.

huggingface_hub, `datasets` and transformers raise errors of several libraries, and hide the error that says
what happened behind others.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
from huggingface_hub.errors import (
    DisabledRepoError,
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from encore.errors import first_line

ERRORS = (OSError, ValueError, httpx.HTTPError)  # errors that the clients raise
OF_HUB = (HfHubHTTPError, OfflineModeIsEnabled, httpx.HTTPError)
UNREACHED = (httpx.ConnectError, httpx.TimeoutException, httpx.ProxyError)
AGAIN = "run the same command again; files that came whole are kept"


@dataclass(frozen=True)
class Wanted:
    """A model or data set of the Hub. `fetch` is the shell command that puts it into the cache."""

    kind: str  # "model" or "data set"
    name: str
    revision: str | None = None
    fetch: str | None = None

    def __str__(self) -> str:
        return f"{self.name} at revision {self.revision}" if self.revision else self.name


def is_of_hub(error: BaseException) -> bool:
    """Return whether the Hub, or the connection to it, caused an error."""
    return any(isinstance(cause, OF_HUB) for cause in _causes(error))


def explain(error: BaseException, wanted: Wanted) -> str:
    """Return what went wrong and what to do, in one line; the error's first line if it is not of the Hub."""
    cause = next((cause for cause in _causes(error) if isinstance(cause, OF_HUB)), error)
    if isinstance(cause, OfflineModeIsEnabled):
        return f"{wanted} is not in the cache and HF_HUB_OFFLINE is set{_fetching(wanted)}"
    if isinstance(cause, UNREACHED):
        reason = f"the Hub cannot be reached ({type(cause).__name__})"
        return f"{wanted} is not in the cache and {reason}{_fetching(wanted)}"
    if isinstance(cause, HfHubHTTPError):
        return _refused(cause, wanted)
    if isinstance(cause, OF_HUB):
        return f"{wanted}: the connection to the Hub broke off ({first_line(cause)}); {AGAIN}"
    return first_line(error)


def _refused(error: HfHubHTTPError, wanted: Wanted) -> str:
    """Return what an error status of the Hub means, and what to do, in one line."""
    status = error.response.status_code
    if isinstance(error, GatedRepoError):
        return f"{wanted} is gated: ask for access on its page of the Hub, then `hf auth login`"
    if isinstance(error, RepositoryNotFoundError):
        private = "a private one needs `hf auth login`"
        return f"the Hub has no {wanted.kind} {wanted.name}: is its name misspelt? {private}"
    if isinstance(error, RevisionNotFoundError):
        return f"the Hub has no revision {wanted.revision} of {wanted.name}: is it misspelt?"
    if isinstance(error, DisabledRepoError):
        return f"{wanted} is disabled on the Hub; name another {wanted.kind}"
    if status in (401, 403):
        return f"the Hub refuses the token for {wanted} (status {status}): `hf auth login` with a valid one"
    if status == 429 or status >= 500:
        return f"{wanted}: the Hub answers with status {status}; {AGAIN}"
    return f"{wanted}: the Hub answers with status {status}: {first_line(error)}"


def _fetching(wanted: Wanted) -> str:
    return f"; fetch it first, where there is a network: {wanted.fetch}" if wanted.fetch else ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, the error that it was raised from or during, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
