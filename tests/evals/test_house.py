"""The house in figures: whoever merges rooms must be able to trust what it counts, and cannot make it look smaller."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from evals import house
from evals.house import GOALS, House, Walk, figures, upward, walked

LAYERS = ("(cli)", "engine | (skills)", "models")


def built(root: Path, **sources: str) -> House:
    """Write a package of these modules, by path with `__` for a slash."""
    for name, source in {"__init__": "", **sources}.items():
        path = root / "shop" / f"{name.replace('__', '/') if name != '__init__' else name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return House(root / "shop")


def test_rooms_are_counted_with_who_enters_them(tmp_path: Path) -> None:
    """A room that one other alone enters is what merging is about; one that two enter stays."""
    shape = dict(
        built(
            tmp_path,
            engine__selling='"""Sells."""\n\n\ndef sell() -> None:\n    """Sell."""\n    from shop.models import price\n',
            engine__till="from shop.engine.selling import sell\nfrom shop.models.price import PRICE\n\n# a note\n",
            models__price='PRICE = 1\n"""In pence."""\n',
            models__idle="",
        ).shape()
    )
    assert shape["modules"] == 5
    assert shape["modules imported by one other only"] == 1
    assert shape["modules ending in -ing"] == 1
    assert shape["largest package, direct modules"] == 2
    assert shape["imports inside functions"] == 1
    assert (shape["lines"], shape["lines of code"]) == (12, 5)
    assert (shape["import cycles"], shape["swallowed errors"]) == (0, 0)
    assert shape["lines of a function, median"] == 3


def test_a_circle_is_seen_and_one_that_waits_is_none(tmp_path: Path) -> None:
    """Modules that need each other to be imported are one room; a type checker or a call needs nothing at once."""
    there = "from shop.models import b\n"
    assert (
        dict(built(tmp_path / "1", models__a=there, models__b="import shop.models.a\n").shape())["import cycles"] == 1
    )
    late = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from shop.models import a\n"
    later = "def call() -> None:\n    from shop.models import a\n"
    for number, back in enumerate((late, later)):
        house = built(tmp_path / f"late {number}", models__a=there, models__b=back)
        assert dict(house.shape())["import cycles"] == 0


def test_arrows_upward_and_between_neighbours_are_seen_wherever_they_stand(tmp_path: Path) -> None:
    """An import inside a function leans on what is above all the same."""
    shop = built(
        tmp_path,
        cli__app="from shop.engine import till\n",
        engine__till="from shop.models import price\n\n\ndef late() -> None:\n    import shop.cli.app\n",
        skills__trade="from shop.engine import till\n",
        models__price="",
        models__coin="from shop.models import price\n",
    )
    assert sorted(upward(shop, LAYERS)) == [
        ("shop.engine.till", "shop.cli.app"),
        ("shop.skills.trade", "shop.engine.till"),
    ]


def test_a_room_that_a_table_names_has_the_table_for_a_user(tmp_path: Path) -> None:
    """What is imported by its name when it is used would else seem to need nobody, and lean on nothing."""
    shop = built(
        tmp_path,
        cli__app='COMMANDS = {"pay": "shop.cli.pay:pay", "hours": "shop.cli"}\n',
        cli__pay="",
        models__price='LATER = "shop.cli.pay"\n',
    )
    assert list(shop.imports().predecessors("shop.cli.pay")) == ["shop.cli.app", "shop.models.price"]
    assert upward(shop, LAYERS) == [("shop.models.price", "shop.cli.pay")]
    assert not shop.imports(at_once=True).edges


@pytest.mark.parametrize(
    ("source", "swallowed"),
    [
        ("try:\n    x = 1\nexcept Exception:\n    pass\n", 1),
        ("try:\n    x = 1\nexcept:\n    ...\n", 1),
        ("for _ in ():\n    try:\n        x = 1\n    except BaseException:\n        continue\n", 1),
        ("from contextlib import suppress\nwith suppress(Exception):\n    x = 1\n", 1),
        ("from contextlib import suppress\nwith suppress(KeyError):\n    x = 1\n", 0),
        ("try:\n    x = 1\nexcept KeyError:\n    pass\n", 0),
        ("try:\n    x = 1\nexcept Exception:\n    raise\n", 0),
    ],
)
def test_an_error_that_nothing_is_done_about_is_seen(source: str, swallowed: int, tmp_path: Path) -> None:
    """Each is a fault that its user never hears of."""
    assert dict(built(tmp_path, models__a=f"{source}def f() -> None: ...\n").shape())["swallowed errors"] == swallowed


def test_a_walk_counts_files_functions_and_statements_of_all_threads(tmp_path: Path) -> None:
    """A graph runs its nodes in threads: what they do is on the way, too; what others do at another time is not."""
    space: dict[str, Any] = {}
    for name, source in (
        ("one", "def one(then):\n    [each for each in 'ab']\n    then()\n"),
        ("two", "def two(): ...\n"),
    ):
        path = tmp_path / f"{name}.py"
        path.write_text(source, encoding="utf-8")
        exec(compile(ast.parse(source), str(path), "exec"), space)
    engine = create_engine("sqlite://")

    def other_thread() -> None:
        thread = Thread(target=space["two"])
        thread.start()
        thread.join()

    def ask() -> None:
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))

    def both() -> None:
        other_thread()
        ask()

    with walked(tmp_path) as follow:
        ask()
        space["two"]()
        alone, together = follow(lambda: space["one"](ask)), follow(lambda: space["one"](both))
    engine.dispose()
    assert [(walk.files, walk.functions, walk.statements) for walk in (alone, together)] == [(1, 1, 1), (2, 2, 1)]


def verdicts(**changed: float) -> Mapping[str, str]:
    met = {name: goal.bar - (goal.sense == "under") for name, goal in GOALS.items()}
    return {figure.name: figure.verdict for figure in figures({**met, **changed})}


def test_a_goal_that_is_missed_is_red_and_one_that_is_reached_is_not() -> None:
    """A house that grows again must stop the run."""
    assert set(verdicts().values()) == {"PASS"}
    assert [name for name, verdict in verdicts(**{"import cycles": 1}).items() if verdict == "FAIL"] == [
        "import cycles"
    ]
    worse = verdicts(**{"lines of a function, median": 9.0})
    assert worse["lines of a function, median"] == "FAIL"


@pytest.mark.slow
def test_everything_that_has_a_goal_is_measured_on_the_house_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole command, on the page, too; only the processes that are timed are left out."""
    monkeypatch.setattr(house, "_import_ratio", lambda: 2.5)
    page = tmp_path / "page.md"
    page.write_text("<!-- begin: house -->\n<!-- end: house -->\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        house.main(["--page", str(page)])
    lines = capsys.readouterr().out.splitlines()
    written = page.read_text(encoding="utf-8")
    for name in GOALS:
        (line,) = (line for line in lines if line.startswith(f"{name}  "))
        assert line in written
    assert not any(line.split("  ")[-1].startswith("0 when") and "FAIL" in line for line in lines)


def test_a_walk_that_visits_nothing_is_empty() -> None:
    """What was not followed is not guessed."""
    assert (Walk().files, Walk().functions, Walk().statements) == (0, 0, 0)
