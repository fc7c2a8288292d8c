"""Ctrl-C for a process that a test starts."""

import signal


def heed() -> None:
    """Let the process end at SIGINT, as `preexec_fn`: what a shell runs in the background ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
