"""What is deployed by the files of `deploy` and by compose.yaml is there: settings, commands, probes, metrics, alerts."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import ApiClient

from remegraph.servers.watch import PROBES
from remegraph.settings import _IN_ENVIRONMENT, Settings
from remegraph.telemetry import METRICS
from tests.deploy.manifests import COMPOSE, DEPLOY, ROOT, Started, composed, objects, on_kubernetes, under_systemd, unit
from tests.docs import commands

pytestmark = pytest.mark.requirement("X9")

_EVERY = [
    pytest.param(each, id=f"{kind} {each.name}")
    for kind, found in (("compose", composed()), ("kubernetes", on_kubernetes()), ("systemd", under_systemd()))
    for each in found
]


def _given(started: Started, folder: Path) -> dict[str, str]:
    """The environment of a process, with its settings file in a folder."""
    (folder / "remegraph.toml").write_text(started.settings, encoding="utf-8")
    env = {
        name: value for name, value in started.env.items() if "${" not in value
    }  # what stands there is put in by others
    return env | {"REMEGRAPH_SETTINGS": str(folder / "remegraph.toml"), "REMEGRAPH_JOURNAL_KEY": "of all of them, long"}


@pytest.mark.parametrize("started", _EVERY)
def test_a_process_is_given_variables_that_are_read_and_settings_that_hold(started: Started, tmp_path: Path) -> None:
    """A variable with another name is silently not read, and a worker with other settings leaves all work alone."""
    ours = {name.removeprefix("REMEGRAPH_").lower() for name in started.env if name.startswith("REMEGRAPH_")}
    assert ours <= {*_IN_ENVIRONMENT, "settings"}
    settings = Settings.from_env(_given(started, tmp_path))
    assert (settings.queue, settings.migrate, settings.capture.background) == ("procrastinate", "never", False)
    assert settings.index == "pgvector"
    assert "journal_key" in ours
    assert ours >= {"ledger_url", "settings"}


@pytest.mark.parametrize("started", _EVERY)
def test_a_process_is_started_and_asked_by_commands_and_paths_that_are_there(started: Started) -> None:
    """Otherwise it never starts, or is restarted for ever."""
    for command in (started.command, *started.asked):
        commands.hold(command)
    assert set(started.paths) <= set(PROBES)


def test_every_process_that_stays_is_asked_whether_it_is_well_except_under_systemd() -> None:
    """What hangs is restarted; what is not ready is sent nobody."""
    for started in chain(composed(), on_kubernetes()):
        if started.name != "migrate":
            assert started.asked or started.paths, started.name


def test_services_and_workers_are_given_the_same_settings(tmp_path: Path) -> None:
    """Work bears a stamp of them."""
    for found in (composed(), on_kubernetes(), under_systemd()):
        service, worker = (
            Settings.from_env(_given(each, tmp_path)) for each in found if not each.name.endswith("migrate")
        )
        assert service == worker


def test_kubernetes_knows_every_field_of_its_manifests() -> None:
    """A field at the wrong place is dropped or refused when somebody deploys."""
    api: Any = ApiClient()  # only part of it has types
    for each in objects():
        read = api.deserialize(json.dumps(each), f"V1{each['kind']}", None)
        assert api.sanitize_for_serialization(read) == each


def test_pods_find_what_they_mount_and_secrets_are_read_by_their_group_alone() -> None:
    """Remegraph refuses a secret that everybody may read, and a pod without its volume never starts."""
    pods = [each["spec"]["template"]["spec"] for each in objects() if each["kind"] in {"Deployment", "Job"}]
    for pod in pods:
        volumes = {each["name"]: each for each in pod["volumes"]}
        (container,) = pod["containers"]
        assert {each["name"] for each in container["volumeMounts"]} == volumes.keys()
        secret = volumes["secrets"]["secret"]
        assert (oct(secret["defaultMode"]), pod["securityContext"]["fsGroup"]) == ("0o440", 1000)
        (where,) = (each["mountPath"] for each in container["volumeMounts"] if each["name"] == "secrets")
        env = next(each.env for each in on_kubernetes() if each.name == container["name"])
        assert env["REMEGRAPH_LEDGER_URL"].endswith(f"?password_file={where}/{secret['items'][0]['path']}")


def test_a_pod_may_do_no_more_than_it_must() -> None:
    """What breaks out of one finds no account of the cluster, and no call of the system that nobody needs."""
    pods = [each["spec"]["template"]["spec"] for each in objects() if each["kind"] in {"Deployment", "Job"}]
    for pod in pods:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_the_pods_behind_the_service_are_reached_by_the_proxy_that_the_page_names_alone() -> None:
    """Whoever reaches them is believed to be whom a header names."""
    (door,) = (each["spec"]["selector"] for each in objects() if each["kind"] == "Service")
    (policy,) = (each["spec"] for each in objects() if each["kind"] == "NetworkPolicy")
    assert (policy["podSelector"], policy["policyTypes"]) == ({"matchLabels": door}, ["Ingress"])
    ((source,),) = (each["from"] for each in policy["ingress"])
    ((label, value),) = source["podSelector"]["matchLabels"].items()
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    assert f'`{label}: "{value}"`' in page
    assert f"--labels={label}={value} " in page


def test_the_password_of_the_owner_is_for_the_unit_that_migrates_alone() -> None:
    """Whoever breaks into a service would drop tables by it."""
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    (group,) = re.findall(r"install -m 640 -g (\S+) owner-password /etc/remegraph/$", page, re.MULTILINE)
    users = {path.stem: unit(path) for path in (DEPLOY / "systemd").glob("*.service")}
    own = {name for name, keys in users.items() if keys["User"] == [group]}
    told = {name for name, keys in users.items() if "/etc/remegraph/owner.env" in keys["EnvironmentFile"]}
    assert own == told == {"remegraph-migrate"}


def test_a_deployment_is_replaced_and_drained_pod_by_pod() -> None:
    """An upgrade of the cluster takes whole machines away."""
    labels = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in objects()
        if each["kind"] == "Deployment"
    }
    kept = {
        each["metadata"]["name"]: each["spec"]["selector"]["matchLabels"]
        for each in objects()
        if each["kind"] == "PodDisruptionBudget"
    }
    assert kept == labels
    (door,) = (each["spec"]["selector"] for each in objects() if each["kind"] == "Service")
    assert door == labels["remegraph-service"]


def test_no_unit_says_what_its_files_say_otherwise() -> None:
    """What a file says counts more for systemd than what stands in the unit."""
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        keys = unit(path)
        told = {each.partition("=")[0] for each in keys["Environment"]}
        for file in keys["EnvironmentFile"]:
            text = (path.parent / Path(file).name).read_text(encoding="utf-8")
            assert told.isdisjoint(re.findall(r"^(\w+)=", text, re.MULTILINE))


def test_compose_starts_a_postgresql_with_pgvector_and_waits_for_what_says_that_it_is_well() -> None:
    """An image without the extension, or one that changes by itself, fails whoever starts it."""
    assert re.fullmatch(r"pgvector/pgvector:\d+\.\d+\.\d+-pg\d+", COMPOSE["services"]["postgres"]["image"])
    for each in COMPOSE["services"].values():
        for name, wanted in each.get("depends_on", {}).items():
            other = COMPOSE["services"][name]
            assert wanted["condition"] != "service_healthy" or "healthcheck" in other


def test_the_image_has_what_its_commands_need_and_is_sent_no_more_than_is_copied() -> None:
    """It is built on machines that these tests never see."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = re.findall(r"^RUN pip (install .*)$", text, re.MULTILINE)
    commands.hold(["pip", *(word.strip('"') for word in line.split() if word.startswith(("install", '".')))])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    sent = re.findall(r"^!(.+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    assert {project["readme"], *project["license-files"], "constraints.txt", "pyproject.toml", "src", "examples"} == {
        *sent
    }
    for name in sent:
        assert (ROOT / name).exists()


_EDITED = re.compile(r"`([^`]+)` in ((?:`[^`]+`(?:, )?)+)")


def test_what_is_to_be_edited_stands_in_the_files_that_the_page_names() -> None:
    """Somebody searches for each of them, in an evening, and deploys with whatever was not found."""
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    table = page.partition("## What to edit")[2].partition("\n## ")[0].replace("\\|", "¦")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    found = 0
    for row in rows:
        for cell, folder in zip(row[1:], (DEPLOY / "kubernetes", DEPLOY / "systemd", ROOT), strict=False):
            for what, files in _EDITED.findall(cell):
                for name in re.findall(r"`([^`]+)`", files):
                    found += 1
                    assert what.replace("¦", "|") in (folder / name).read_text(encoding="utf-8"), (what, name)
    assert found > 40


def test_every_secret_that_a_pod_needs_is_made_by_the_commands_of_the_page() -> None:
    """A pod whose secret lacks a key never starts."""
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    needed = set()
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        needed |= set(re.findall(r"key: ([\w-]+)(?:, path|\})", path.read_text(encoding="utf-8")))
    first, *_ = re.findall(r"^\$ kubectl create secret .+$", page, re.MULTILINE)
    assert needed == set(re.findall(r"--from-file=([\w-]+)", first))
    assert needed == set(re.findall(r"> ([\w-]+)$", page.partition("## systemd")[0], re.MULTILINE))


# ------------------------------------------------------------------------------------------- what is watched

_LABELS = {
    "error_type", "gen_ai_request_model", "gen_ai_token_type", "le", "remegraph_ledger", "remegraph_limit",
    "remegraph_missed", "remegraph_operation", "remegraph_state", "remegraph_surface", "remegraph_whose",
}  # fmt: skip
_SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
_UNITS = {"s": "_seconds"}


def _exposed() -> set[str]:
    """The names that metrics have in Prometheus: a unit in braces is left out, another one is written out."""
    return {
        name.replace(".", "_") + _UNITS.get(metric.unit, "") + suffix
        for name, metric in METRICS.items()
        for suffix in _SUFFIXES[metric.kind]
    }


def _rules() -> list[Any]:
    (group,) = yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    rules: list[Any] = group["rules"]
    return rules


def _queries() -> Iterator[str]:
    """All that the dashboard and the rules ask Prometheus for."""
    for rule in _rules():
        yield rule["expr"]
    for panel in json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


def test_every_metric_that_is_asked_for_is_told_and_by_labels_that_it_has() -> None:
    """An alert on a metric that does not exist never fires, and a panel of it is empty."""
    page = (ROOT / "docs" / "observability.md").read_text(encoding="utf-8")
    marks = {name.replace(".", "_") for name in re.findall(r"`((?:remegraph|gen_ai|error)[.\w]+)`", page)}
    assert {*marks, "le"} >= _LABELS
    for query in _queries():
        labels = {name for part in re.findall(r"\{(.*?)\}", query) for name in re.findall(r"(\w+)(?:=~|!=|=)", part)}
        labels |= {name for part in re.findall(r"by \((.*?)\)", query) for name in part.split(", ")}
        assert labels <= _LABELS, query
        bare = re.sub(r"by \(.*?\)|\{.*?\}", "", query)
        named = set(re.findall(r"\b(?:remegraph|gen_ai)\w+", bare))
        assert named, query
        assert named <= _exposed(), query


def test_every_metric_is_shown() -> None:
    """What nobody sees need not be counted."""
    text = (DEPLOY / "grafana.json").read_text(encoding="utf-8")
    assert [name for name in METRICS if name.replace(".", "_") not in text] == []


def test_no_gauge_of_the_ledger_is_added_up() -> None:
    """Every process tells the same of it: the sum is wrong by as many times as there are processes."""
    own = "remegraph_threads_unrecorded"
    gauges = {name.replace(".", "_") for name, metric in METRICS.items() if metric.kind == "gauge"}
    for query in _queries():
        if "sum" in query:
            assert set(re.findall(r"\bremegraph\w+?(?=_seconds|\{|\)|\[)", query)) & gauges <= {own}, query


def test_the_page_says_what_to_do_about_every_alert() -> None:
    """Whoever is woken by one looks it up."""
    page = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(Remegraph\w+)` \| (\w+) \|", page, re.MULTILINE)
    assert told == [(rule["alert"], rule["labels"]["severity"]) for rule in _rules()]
