"""Settings say what is meant, or are refused with the reason."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from remegraph import AgentMemorySettings, ExtractionPolicy, Settings, SetupError
from remegraph.ledger.journal import KEY_FILE
from remegraph.settings import _IN_ENVIRONMENT, _VARIABLES

pytestmark = pytest.mark.requirement("F9")


@pytest.mark.parametrize(
    ("mode", "perspective", "voice"),
    [
        ("tool-call", None, "first-person"),
        ("first-person", "first-person", "first-person"),
        ("ghostwriter", None, "first-person"),
        ("ghostwriter", "third-person", "third-person"),
        ("factual", None, "third-person"),
        ("factual", "first-person", "first-person"),
    ],
)
def test_each_mode_has_a_voice(mode: Any, perspective: Any, voice: str) -> None:
    """Who says nothing gets the perspective that the mode is for."""
    assert ExtractionPolicy(mode=mode, perspective=perspective).voice == voice


@pytest.mark.parametrize("mode", ["tool-call", "first-person"])
def test_an_agent_that_writes_itself_does_not_write_as_another(mode: Any) -> None:
    """A contradiction in the settings would be a riddle in the memories."""
    with pytest.raises(ValidationError, match="leave perspective out"):
        ExtractionPolicy(mode=mode, perspective="third-person")


@pytest.mark.parametrize(
    "wrong",
    [
        {"agent": {"extraction": {"trigger": "hourly"}}},
        {"agent": {"extraction": {"min_turns": 0}}},
        {"agent": {"lifecycle": {"merge_threshold": 1.1}}},
        {"agent": {"lifecycle": {"policy": "whim"}}},
        {"agent": {"lifecycle": {"decay_factor": 0}}},
        {"agent": {"lifecycle": {"low_threshold": 0.1, "forget_threshold": 0.2}}},
        {"agent": {"lifecycle": {"max_entries": 0}}},
        {"agent": {"retrieval": {"k": 0}}},
        {"agent": {"retrieval": {"depth": "everything"}}},
        {"agent": {"usage": "wisdom"}},
        {"agent": {"extration": {}}},
        {"capture": {"max_pending": 0}},
        {"capture": {"lease": 0}},
        {"capture": {"poll": 0}},
    ],
    ids=str,
)
def test_a_setting_out_of_range_or_misspelt_is_refused(wrong: dict[str, Any]) -> None:
    """A setting that is silently ignored is found out much later."""
    with pytest.raises(ValidationError):
        Settings.model_validate(wrong)


def test_agents_have_their_own_settings_or_those_of_all() -> None:
    """One place says it for all, one for each that differs."""
    own = AgentMemorySettings(enabled=False)
    settings = Settings(agents={"remy": own})
    assert settings.for_agent("remy") is own
    assert settings.for_agent("rosa") is settings.for_agent(None) is settings.agent


@pytest.mark.parametrize("differs", [{"extraction": {"mode": "ghostwriter"}}, {"usage": "knowledge"}])
def test_a_shared_library_is_written_in_one_way(differs: dict[str, Any]) -> None:
    """Agents that share memories share one background; two ways of writing would fight."""
    with pytest.raises(ValidationError, match="'remy' shares its library"):
        Settings.model_validate({"agents": {"remy": {"library": "shared", **differs}}})
    alike = {"agent": differs, "agents": {"remy": {"library": "shared", **differs}}}
    assert Settings.model_validate(alike).for_agent("remy").library == "shared"


@pytest.mark.parametrize(
    ("told", "learns"),
    [
        ({}, True),
        ({"enabled": False}, False),
        ({"usage": "knowledge"}, False),
        ({"usage": "hybrid"}, True),
        ({"extraction": {"trigger": "manual"}}, False),
        ({"extraction": {"trigger": "session-end"}}, True),
    ],
)
def test_the_settings_tell_whether_an_agent_learns_by_itself(told: dict[str, Any], learns: bool) -> None:
    """One answer for all who ask: capture, recording and the background."""
    assert AgentMemorySettings.model_validate(told).learns is learns


def test_a_settings_file_says_it_all_and_the_environment_counts_more(tmp_path: Path) -> None:
    """Service and worker read one file; addresses and secrets come from where they are kept."""
    path = tmp_path / "remegraph.toml"
    path.write_text(
        """
        ledger_url = "postgresql://db/remegraph"
        redact = ["email", "card"]
        [slicing]
        gap = "PT1H"
        [agent.lifecycle]
        purge_after = "never"
        [agents."remy the 1st".extraction]
        mode = "tool-call"
        """,
        encoding="utf-8",
    )
    env = {"REMEGRAPH_SETTINGS": str(path), "REMEGRAPH_LEDGER_URL": "postgresql://ann@db/other"}
    for settings in (Settings.from_env(env), Settings.from_file(path, env)):
        assert settings.ledger_url == "postgresql://ann@db/other"
        assert settings.redact == {"email", "card"}
        assert settings.slicing.gap == timedelta(hours=1)
        assert settings.agent.lifecycle.purge_after is None
        assert settings.for_agent("remy the 1st").extraction.mode == "tool-call"
    assert Settings.from_file(path, {}).ledger_url == "postgresql://db/remegraph"


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (None, "cannot be read"),
        ("[agent", "cannot be read"),
        ("colour = 'red'", "colour in .*settings.toml cannot be used"),
        ("[agents.remy.extraction]\nmode = 'hush hush'", r"agents.remy.extraction.mode in .*settings.toml"),
    ],
)
def test_a_settings_file_that_cannot_be_used_is_named_with_the_place(
    tmp_path: Path, told: str | None, says: str
) -> None:
    """A worker that falls back to defaults in silence would learn what nobody wanted."""
    path = tmp_path / "settings.toml"
    if told is not None:
        path.write_text(told, encoding="utf-8")
    with pytest.raises(SetupError, match=says) as caught:
        Settings.from_env({"REMEGRAPH_SETTINGS": str(path)})
    assert "hush" not in str(caught.value)
    with pytest.raises(SetupError, match="REMEGRAPH_QUEUE cannot be used"):
        Settings.from_env({"REMEGRAPH_QUEUE": "kafka"})


def test_a_line_end_behind_a_key_in_the_environment_is_no_part_of_it() -> None:
    """Stores of secrets add one; it had sealed with another key, and the doctor would have cried tampering."""
    key = "a key that is long enough"
    env = {"REMEGRAPH_JOURNAL_KEY": f"{key}\n", "REMEGRAPH_FORMER_JOURNAL_KEYS": f" {key} \n", "REMEGRAPH_REDACT": "\n"}
    settings = Settings.from_env(env)
    assert (settings.journal_key, settings.former_journal_keys, settings.redact) == (key, (key,), frozenset())


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("REMEGRAPH_LEDGER", "Did you mean REMEGRAPH_LEDGER_URL?"),
        ("REMEGRAPH_LEDGER_URI", "Did you mean REMEGRAPH_LEDGER_URL?"),
        ("REMEGRAPH_ledger_url", "Did you mean REMEGRAPH_LEDGER_URL?"),
        ("REMEGRAPH_INDX", "Did you mean REMEGRAPH_INDEX?"),
        ("REMEGRAPH_JOURNAL", "Did you mean REMEGRAPH_JOURNAL_KEY?"),
        ("REMEGRAPH_POOL__SIZ", "the setting `pool.size`? It is set in the file that REMEGRAPH_SETTINGS names"),
        ("REMEGRAPH_AGENT_EXTRACTION_TRIGGER", "the setting `agent.extraction.trigger`"),
    ],
)
def test_a_slip_in_the_name_of_a_variable_is_refused_with_the_name_that_was_meant(slip: str, meant: str) -> None:
    """Whoever mistypes the ledger's would write to a file of this machine, and find out when another one knows nothing."""
    with pytest.raises(SetupError, match=re.escape(meant)) as caught:
        Settings.from_env({slip: "a secret"})
    assert caught.value.what == f"{slip} is no variable of remegraph."
    assert "a secret" not in str(caught.value)


def test_variables_of_others_pass_and_those_of_nobody_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Kubernetes tells each pod of a Service called remegraph; a host may have names of its own."""
    services = ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_8000_TCP", "PORT_8000_TCP_ADDR")
    of_kubernetes = [f"REMEGRAPH_{more}{name}" for name in services for more in ("", "MCP_", "HOME_")]
    unset = ["REMEGRAPH_INDX", "REMEGRAPH_IMAGES"]
    assert Settings.from_env({**dict.fromkeys(of_kubernetes, "10.0.0.1"), **dict.fromkeys(unset, " ")}) == Settings()
    assert caplog.records == []
    assert (
        Settings.from_env({"REMEGRAPH_IMAGE": "a secret", "REMEGRAPH_TENANT_ID": "t", "MY_REMEGRAPH": "m"})
        == Settings()
    )
    assert [record.getMessage() for record in caplog.records] == [
        "REMEGRAPH_IMAGE is no variable of remegraph, and is left out of account.",
        "REMEGRAPH_TENANT_ID is no variable of remegraph, and is left out of account.",
    ]


def test_every_variable_that_is_read_and_every_file_of_a_secret_is_in_the_one_table() -> None:
    """Who deploys looks there, and nowhere else."""
    root = Path(__file__).parents[1]
    page = (root / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (root / "src").rglob("*.py"))
    named = {f"REMEGRAPH_{name.upper()}" for name in _IN_ENVIRONMENT} | set(
        re.findall(r"REMEGRAPH_[A-Z_]*[A-Z]", sources)
    )
    assert named == {f"REMEGRAPH_{name}" for name in _VARIABLES}
    for name in (*named, "OPENAI_API_KEY", "PGPASSFILE", "?password_file=", KEY_FILE, "--tokens"):
        assert any(name in row.split(" | ")[0] + row.split(" | ")[2] for row in rows), name


def test_no_model_and_no_embedder_can_be_said_where_there_is_no_none() -> None:
    """With a key of OpenAI at hand for something else, a worker without a model is told so by a variable or a file."""
    env = {"OPENAI_API_KEY": "sk", "REMEGRAPH_MODEL": "none", "REMEGRAPH_EMBEDDER": "none"}
    assert (Settings.from_env(env).model, Settings.from_env(env).embedder) == (None, None)
    assert Settings(model="none").model is None


def test_a_value_within_a_variable_is_told_as_of_the_variable(tmp_path: Path) -> None:
    """The file beside it is right, and is not to be searched."""
    path = tmp_path / "remegraph.toml"
    path.write_text("index = 'chroma'\n", encoding="utf-8")
    with pytest.raises(SetupError, match="REMEGRAPH_REDACT cannot be used"):
        Settings.from_env({"REMEGRAPH_SETTINGS": str(path), "REMEGRAPH_REDACT": "emial"})
