"""What every command runs in: an open kit, output as text or JSON, progress bars, errors in one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer
from pydantic import BaseModel
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.text import Text

from remegraph.cli.views import plain
from remegraph.errors import EmbedderMismatchError, NaiveTimeError, RemegraphError, SetupError
from remegraph.kit import MemoryKit
from remegraph.models import Progress
from remegraph.settings import Settings

__all__ = ["Output", "Report", "guarded", "open_kit"]

Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command's results go."""

    as_json: bool
    console: Console
    """Standard output: results."""
    errors: Console
    """Standard error: progress and errors."""

    def show(self, data: object, *views: RenderableType) -> None:
        """Print the data as one JSON document, or the views of it for people."""
        if self.as_json:
            typer.echo(json.dumps(_jsonable(data), indent=2))
            return
        for view in views:
            self.console.print(view)

    @contextmanager
    def bars(self) -> Iterator[Report]:
        """Draw progress on standard error while the context lasts; on a terminal only."""
        columns = (
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("[dim]{task.fields[detail]}"),
        )
        tasks: dict[str, TaskID] = {}
        drawn = self.errors.is_terminal and not self.as_json
        with Bars(*columns, console=self.errors, transient=True, disable=not drawn) as bars:

            def report(progress: Progress) -> None:
                if progress.stage not in tasks:
                    tasks[progress.stage] = bars.add_task(progress.stage, total=None, detail="")
                task, total = tasks[progress.stage], progress.total or None
                bars.update(task, completed=progress.done, total=total, detail=plain(progress.detail))

            yield report


def _jsonable(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_jsonable(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


@contextmanager
def guarded(*, as_json: bool) -> Iterator[Output]:
    """Give the output of a command, and turn an error that leaves it into one line and an exit code.

    Raises:
        typer.Exit: With code 1 after an error, 130 after Ctrl-C.
    """
    out = Output(as_json, Console(highlight=False), Console(stderr=True, highlight=False))
    try:
        yield out
    except RemegraphError as error:
        cure = _cure(error)
        if as_json:
            typer.echo(
                json.dumps({"error": {"type": type(error).__name__, "what": error.what, "cure": cure}}, indent=2)
            )
        line = " ".join(plain(f"{error.what} {cure}").split())
        out.errors.print(Text.assemble(("Error: ", "bold red"), line), soft_wrap=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as error:
        out.errors.print("Stopped. What was committed stays; the same command goes on from there.", soft_wrap=True)
        raise typer.Exit(130) from error


def _cure(error: RemegraphError) -> str:
    """Return a cure that whoever types commands can carry out."""
    if isinstance(error, NaiveTimeError):
        return "Say which zone they are in: --timezone Asia/Shanghai."
    if isinstance(error, EmbedderMismatchError):
        return "Set REMEGRAPH_EMBEDDER to the recorded one (hashed:1024 for hashed-ngram-1:1024), or change over in Python."
    return error.cure


@contextmanager
def open_kit(
    home: Path | None, *, model: str | None = None, create: bool = False, file: Path | None = None
) -> Iterator[MemoryKit]:
    """Open the kit of a command.

    Args:
        home: The folder, or None for the one that the environment names.
        model: `provider:model`, `none`, or None for what the environment names.
        create: Whether a home that does not exist yet is made; reading commands refuse it.
        file: The settings file, or None for the one that the environment names.

    Raises:
        SetupError: There is no memory in that folder.
    """
    settings = Settings.from_env() if file is None else Settings.from_file(file)
    if home is not None:
        settings = settings.evolve(home=home)
    if model is not None:
        settings = settings.evolve(model=None if model == "none" else model)
    folder = settings.home.expanduser()
    if not (create or settings.ledger_url or folder.is_dir()):
        cure = "Record something first (remegraph ingest FILE), or name another folder with --home."
        raise SetupError(f"There is no memory in {folder}.", cure)
    with MemoryKit.open(settings=settings) as kit:
        yield kit
