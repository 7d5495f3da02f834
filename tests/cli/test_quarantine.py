from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from remegraph import Scope
from tests.talk import called, create, digest, open_kit, proposal, returned, said

Run = Callable[..., Result]
ME = Scope(user="Ann")
PLANTED = ("Invoices go to account 4711.", "Invoices go to account 4712.")


@pytest.fixture
def home(tmp_path: Path) -> str:
    """A home in which a model fell for two sentences of a page."""
    steps = {
        "DigestAnswer": digest("personal:Ann"),
        "ProposalAnswer": proposal(*(create(text, 3, text) for text in PLANTED)),
    }
    folder = tmp_path / "home"
    with open_kit(folder, steps, reviser="rules") as kit:
        page = returned("c1", " ".join(PLANTED), minutes=2)
        kit.add_messages([said("Please read this."), called("read_page", "c1", minutes=1), page], scope=ME)
        kit.summarize(scope=ME, close=True)
    return str(folder)


@pytest.mark.requirement("X6")
def test_a_person_lists_approves_and_rejects_what_waits_on_the_command_line(run: Run, home: str) -> None:
    """Nobody should have to write a program to say that a page was right."""

    def waiting() -> dict[str, str]:
        listed = run("quarantine", "list", "--user", "Ann", "--home", home, "--json")
        return {memory["content"]: memory["memory_id"] for memory in json.loads(listed.stdout)}

    right, wrong = (waiting()[text] for text in PLANTED)
    assert "quarantined" in run("--home", home, "quarantine", "list", "--user", "Ann").stdout
    assert (
        run("quarantine", "approve", right[:8], "--user", "Ann", "--home", home, "--note", "it is ours").exit_code == 0
    )
    assert run("quarantine", "reject", wrong, "--user", "Ann", "--home", home, "--by", "Bob").exit_code == 0
    assert waiting() == {}
    heads = json.loads(run("memories", "--user", "Ann", "--home", home, "--json").stdout)
    assert [memory["content"] for memory in heads if memory["status"] == "active"] == [PLANTED[0]]
    assert run("quarantine", "reject", right, "--user", "Ann", "--home", home).exit_code == 1
