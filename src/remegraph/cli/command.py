"""What all commands share: an open kit, output as text or JSON, errors in one line, and how records look on a terminal."""

from __future__ import annotations

import inspect
import json
import logging
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Literal, TypeVar
from zoneinfo import ZoneInfo

import typer
from pydantic import TypeAdapter, ValidationError
from rich import box
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

import remegraph
from remegraph.cli.options import ME, Agent, AsJson, Home, Project, Tenant, User
from remegraph.errors import (
    EmbedderMismatchError,
    InputError,
    MessageError,
    NaiveTimeError,
    RemegraphError,
    ScopeError,
    SetupError,
)
from remegraph.importers.messages import parse_time
from remegraph.models import MOVES, Progress, Scope
from remegraph.settings import Settings

__all__ = [
    "FIRST",
    "SHORT_ID",
    "STYLES",
    "Report",
    "Session",
    "Views",
    "counted",
    "first_match",
    "grid",
    "group",
    "guarded",
    "lines",
    "logged",
    "minute",
    "more",
    "nothing",
    "of_home",
    "of_person",
    "of_scope",
    "plain",
    "read_time",
    "read_zone",
    "refuse",
    "scope_of",
    "shortened",
    "state_of",
    "table",
]

Views = tuple[RenderableType, ...]
_Record = TypeVar("_Record")

SHORT_ID = 8
"""Characters of a memory id that are shown; `trace` takes them."""

FIRST = 20
"""Rows shown of lists that may be very long."""

_LONG = 200
"""Characters shown of a tool's output, a call or a reason."""

STYLES = {
    "active": "green",
    "disputed": "yellow",
    "quarantined": "yellow",
    "review": "yellow",
    "superseded": "dim",
    "expired": "dim",
    "deleted": "dim",
    "failed": "red",
    "pending": "cyan",
}


def plain(value: str) -> str:
    """Return text that a terminal shows as it is and never interprets.

    U+FFFD replaces control characters and lone surrogates, and what reverses the order of letters: a text that
    waits for approval would be read otherwise than it is. Marks that honest Arabic and Hebrew have stay.
    """
    return "".join("\ufffd" if _is_unsafe(char) else char for char in value)


def _is_unsafe(char: str) -> bool:
    control = unicodedata.category(char) in {"Cc", "Cs"} and char not in "\n\t"
    return control or unicodedata.bidirectional(char) in {"LRO", "RLO"}


def shortened(value: str) -> str:
    """Return text on one line, cut where it is long."""
    line = " ".join(plain(value).split())
    return line if len(line) <= _LONG else line[: _LONG - 1] + "…"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with what it counts."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def minute(time: datetime) -> str:
    """Return a time to the minute."""
    return f"{time:%Y-%m-%d %H:%M}"


def state_of(state: str) -> Text:
    """Return a state in its colour."""
    return Text(state, style=STYLES.get(state, ""), no_wrap=True)


def lines(texts: Iterable[str], style: str = "yellow") -> Views:
    """Show texts, each on a line of its own, which is not wrapped: what it tells to run can be copied."""
    return tuple(Text(plain(text), style=style, no_wrap=True) for text in texts)


def nothing(words: str) -> Views:
    """Show that there is nothing to show."""
    return (Text(words, style="dim"),)


def more(total: int) -> Views:
    """Say how many rows are not shown, where there are more than the first."""
    return (Text(f"… and {total - FIRST:,} more"),) if total > FIRST else ()


def grid(rows: Iterable[Sequence[RenderableType]]) -> Table:
    """Return rows in columns, without headers."""
    shown = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        shown.add_row(*row)
    return shown


def table(
    found: Sequence[_Record],
    headers: Sequence[str],
    row: Callable[[_Record], Sequence[object]],
    *,
    empty: str = "",
    whole: bool = False,
) -> Views:
    """Show the first records in a table, or the `whole` list; `empty` where there are none.

    A header that begins with > is right-aligned; one with ! or > is never wrapped. Cells without style are plain text.
    """
    if not found:
        return nothing(empty) if empty else ()
    shown = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for header in headers:
        justify: Literal["left", "right"] = "right" if header.startswith(">") else "left"
        shown.add_column(header.lstrip("!>"), justify=justify, no_wrap=header[:1] in {"!", ">"}, overflow="fold")
    for each in found if whole else found[:FIRST]:
        shown.add_row(*(cell if isinstance(cell, Text) else Text(plain(str(cell))) for cell in row(each)))
    return (shown, *(() if whole else more(len(found))))


_JSON = TypeAdapter(object)
"""Turns records, and whatever holds them, into JSON."""

Report = Callable[[Progress], None]
_Opened = TypeVar("_Opened")
_Command = Callable[..., None]

_UUID = 36
"""Characters of a whole id."""


def scope_of(user: str, agent: str | None, project: str | None, tenant: str) -> Scope:
    """Return the scope that the options name.

    Raises:
        ScopeError: A value is empty or holds what no name may hold.
    """
    try:
        return Scope(user=user, agent=agent, project=project, tenant=tenant)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        cure = "Give names that are not empty and free of NUL."
        raise ScopeError(f"--{first['loc'][0]}: {first['msg']}.", cure) from error


def refuse(context: typer.Context, options: Iterable[str], beside: str, cure: str) -> None:
    """Refuse options of the command line that would do nothing. What the environment says about who asks is no request.

    Raises:
        InputError: There are some.
    """
    sources = {name: context.get_parameter_source(name) for name in options}
    named = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if named:
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in named)
        raise InputError(f"{listed} would do nothing {beside}.", cure)


def read_zone(name: str | None) -> tzinfo | None:
    """Return the zone of this name.

    Raises:
        typer.BadParameter: There is none.
    """
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise typer.BadParameter(f"There is no zone {name!r}: give one such as Asia/Shanghai.") from error


def read_time(text: str | None, zone: tzinfo | None) -> datetime | None:
    """Return the time that an option gives.

    Raises:
        typer.BadParameter: It cannot be read.
    """
    if text is None:
        return None
    try:
        return parse_time(text, timezone=zone)
    except MessageError as error:
        raise typer.BadParameter(f"{error.what} Give one such as 2026-03-01T00:00Z, or a --timezone.") from error


def first_match(known: Iterable[str], given: str, what: str) -> str:
    """Return the one known id that begins as given; what was given where there is none, or where it is a whole id.

    Raises:
        InputError: Several begin so; `what` says what they are the ids of.
    """
    found = [each for each in known if each.startswith(given)]
    if given in found or not found or not given:
        return given
    if len(found) > 1:
        raise InputError(f"{len(found)} {what} have an id that begins with {given}.", "Give more of the id.")
    return found[0]


# ------------------------------------------------------------------------------------------ running one command


class Session:
    """One run of a command: opens the kit when it is first needed, and prints the results."""

    def __init__(self, home: Path | None = None, *, as_json: bool = False) -> None:
        self.home = home
        self.as_json = as_json
        self.console = Console(highlight=False)
        """Standard output: results."""
        self.errors = Console(stderr=True, highlight=False)
        """Standard error: progress and errors."""
        self.opened = ExitStack()
        self._kit: remegraph.MemoryKit | None = None

    def enter(self, context: AbstractContextManager[_Opened]) -> _Opened:
        """Enter a context that is left before the results are shown, or when the command fails."""
        return self.opened.enter_context(context)

    def kit(self, model: str | None = None, *, create: bool = False, file: Path | None = None) -> remegraph.MemoryKit:
        """Return the kit; the first call opens it, with the settings of the environment where none are given.

        Raises:
            SetupError: There is no memory in that folder, and none is to be created.
        """
        if self._kit is not None:
            return self._kit
        settings = Settings.from_env() if file is None else Settings.from_file(file)
        if self.home is not None:
            settings = settings.evolve(home=self.home)
        if model is not None:
            settings = settings.evolve(model=model)
        folder = settings.home.expanduser()
        if not (create or settings.ledger_url or folder.is_dir()):
            cure = "Record something first (`remegraph ingest FILE`), or name another folder with --home."
            raise SetupError(f"There is no memory in {folder}.", cure)
        self._kit = self.enter(remegraph.MemoryKit.open(settings=settings))
        return self._kit

    def memory_id(self, scope: Scope, given: str) -> str:
        """Return the id of the one memory of this scope that begins as given; what was given where none does.

        Raises:
            InputError: Several do.
        """
        if not 0 < len(given) < _UUID:  # whole: no need to list all memories, which may be many
            return given
        found = self.kit().memories(scope=scope, statuses=tuple(MOVES))
        return first_match((memory.memory_id for memory in found), given, "memories")

    def bars(self) -> Report:
        """Return what draws progress on standard error until the results are shown; on a terminal only."""
        columns = (
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("[dim]{task.fields[detail]}"),
        )
        drawn = self.errors.is_terminal and not self.as_json
        bars = self.enter(Bars(*columns, console=self.errors, transient=True, disable=not drawn))
        tasks: dict[str, TaskID] = {}

        def report(progress: Progress) -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = bars.add_task(progress.stage, total=None, detail="")
            task, total = tasks[progress.stage], progress.total or None
            bars.update(task, completed=progress.done, total=total, detail=plain(progress.detail))

        return report

    def show(self, data: object, *views: RenderableType) -> None:
        """Close the kit, then print the results."""
        self.opened.close()
        self.print(data, *views)

    def print(self, data: object, *views: RenderableType) -> None:
        """Print the data as one JSON document, or the views of it for people."""
        if self.as_json:
            typer.echo(json.dumps(_JSON.dump_python(data, mode="json", fallback=str), indent=2))
            return
        for view in views:
            self.console.print(view, soft_wrap=isinstance(view, Text) and bool(view.no_wrap))


@contextmanager
def guarded(home: Path | None = None, *, as_json: bool) -> Iterator[Session]:
    """Run a command in a session; an error that leaves it becomes one line and an exit code.

    Raises:
        typer.Exit: With code 1 after an error, 130 after Ctrl-C.
    """
    session = Session(home, as_json=as_json)
    try:
        with session.opened:
            yield session
    except RemegraphError as error:
        cure = _cure(error)
        if as_json:
            typer.echo(
                json.dumps({"error": {"type": type(error).__name__, "what": error.what, "cure": cure}}, indent=2)
            )
        line = " ".join(plain(f"{error.what} {cure}").split())
        session.errors.print(Text.assemble(("Error: ", "bold red"), line), soft_wrap=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as error:
        session.errors.print("Stopped. What was committed stays; the same command goes on from there.", soft_wrap=True)
        raise typer.Exit(130) from error


@contextmanager
def logged() -> Iterator[None]:
    """Write the log to standard error, with time, level and logger; a process that has set logging up keeps its own."""
    root, ours, shown = logging.getLogger(), logging.getLogger("remegraph"), logging.StreamHandler()
    shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    level = ours.level
    ours.setLevel(logging.INFO)
    if not root.handlers:
        root.addHandler(shown)
    try:
        yield
    finally:
        root.removeHandler(shown)
        ours.setLevel(level)


def _cure(error: RemegraphError) -> str:
    """Return a cure that can be carried out on the command line."""
    if isinstance(error, NaiveTimeError):
        return "Say which zone they are in: --timezone Asia/Shanghai."
    if isinstance(error, EmbedderMismatchError):
        return "Set REMEGRAPH_EMBEDDER to the recorded one (hashed:1024 for hashed-ngram-1:1024), or change over in Python."
    return error.cure


# ------------------------------------------------------------------------------------------- defining commands


def group() -> typer.Typer:
    """Return an empty group of commands; `app` says what it is about."""
    return typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})


def _option(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


_OF_HOME = (_option("home", Home, None), _option("as_json", AsJson, False))
_OF_PERSON = (_option("user", User, ME), _option("tenant", Tenant, "default"))
_OF_SCOPE = (_OF_PERSON[0], _option("agent", Agent, None), _option("project", Project, None), _OF_PERSON[1])


def of_home(into: typer.Typer | None = None, name: str | None = None) -> Callable[[_Command], _Command]:
    """Make a function a command of a group, about a whole home: guarded, with `--home` and `--json` beside its options."""
    return lambda command: _registered(command, (), into, name)


def of_scope(into: typer.Typer | None = None, name: str | None = None) -> Callable[[_Command], _Command]:
    """Make a function a command about the memories of one scope, which it takes after the session; see `of_home`."""
    return lambda command: _registered(command, _OF_SCOPE, into, name)


def of_person(into: typer.Typer | None = None, name: str | None = None) -> Callable[[_Command], _Command]:
    """Make a function a command about a person, or a tenant, whatever agent and project; it takes a scope of neither."""
    return lambda command: _registered(command, _OF_PERSON, into, name)


def _registered(
    command: _Command, who: tuple[inspect.Parameter, ...], into: typer.Typer | None, name: str | None
) -> _Command:
    def run(**given: Any) -> None:
        names = {"agent": None, "project": None, **{each.name: given.pop(each.name) for each in who}} if who else {}
        with guarded(given.pop("home"), as_json=given.pop("as_json")) as session:
            command(session, *([scope_of(**names)] if names else []), **given)

    own = tuple(inspect.signature(command, eval_str=True).parameters.values())
    parameters = [*own[2 if who else 1 :], *who, *_OF_HOME]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run if into is None else into.command(name)(run)
