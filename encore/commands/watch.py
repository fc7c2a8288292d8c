"""The command `encore watch`, which serves, on this machine, a page that follows runs as they go on."""

from collections.abc import Sequence
from pathlib import Path

import typer

from analysis.watch.server import HOST, listen
from analysis.watch.watcher import Watcher


def serve(results: Path, recipes: Sequence[str], port: int) -> None:
    """Serve the page until Ctrl-C. Raises UserError if nothing can be watched, or the port cannot be used."""
    watcher = Watcher(results, recipes)
    watcher.check_results()
    with listen(watcher, port) as server:
        try:
            typer.echo(f"watching {results}: http://{HOST}:{server.server_port}/ (Ctrl-C ends it)")
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("\nended; the runs go on")
