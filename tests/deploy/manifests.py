"""What the files of `deploy` and compose.yaml start: each process with its command, its environment and its probes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

__all__ = ["COMPOSE", "DEPLOY", "ROOT", "Started", "composed", "objects", "on_kubernetes", "under_systemd", "unit"]

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: Mapping[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Started:
    """A process as a file has it started.

    Attributes:
        settings: What is in the settings file that its environment names.
        asked: Commands that ask whether it is well.
        paths: Paths that are requested to ask whether it is well.
    """

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    settings: str
    asked: Sequence[Sequence[str]] = ()
    paths: Sequence[str] = ()


def composed() -> Iterator[Started]:
    """Yield what compose.yaml starts of ours."""
    for name, service in COMPOSE["services"].items():
        if "build" in service:
            asked = [service["healthcheck"]["test"][1:]] if "healthcheck" in service else []
            told = COMPOSE["configs"]["settings"]["content"]
            yield Started(name, service["command"], service["environment"], told, asked)


def objects() -> Iterator[Any]:
    """Yield the objects of the manifests for Kubernetes."""
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        yield from yaml.safe_load_all(path.read_text(encoding="utf-8"))


def on_kubernetes() -> Iterator[Started]:
    """Yield what the manifests for Kubernetes start; what a secret holds stands as the name of its key."""
    maps = {each["metadata"]["name"]: each["data"] for each in objects() if each["kind"] == "ConfigMap"}
    pods = [each["spec"]["template"]["spec"] for each in objects() if each["kind"] in {"Deployment", "Job"}]
    for pod in pods:
        for container in pod["containers"]:
            env = dict(maps[container["envFrom"][0]["configMapRef"]["name"]])
            env |= {
                one["name"]: one.get("value") or one["valueFrom"]["secretKeyRef"]["key"] for one in container["env"]
            }
            probes = [value for key, value in container.items() if key.endswith("Probe")]
            asked = [probe["exec"]["command"] for probe in probes if "exec" in probe]
            paths = [probe["httpGet"]["path"] for probe in probes if "httpGet" in probe]
            told = maps["remegraph-settings"]["remegraph.toml"]
            yield Started(container["name"], container["command"], env, told, asked, paths)


def unit(path: Path) -> Mapping[str, Sequence[str]]:
    """Return the keys of the section `Service` of a unit, each with its values: some may be given twice."""
    text = re.split(r"^\[Service\]$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1].partition("\n[")[0]
    found: dict[str, list[str]] = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE):
        found.setdefault(key, []).append(value)
    return found


def under_systemd() -> Iterator[Started]:
    """Yield what the units for systemd start."""
    folder = DEPLOY / "systemd"
    for path in sorted(folder.glob("*.service")):
        keys = unit(path)
        env = dict(each.partition("=")[::2] for each in keys["Environment"])
        for file in keys["EnvironmentFile"]:  # it comes after what stands in the unit, and counts more
            env |= _variables(folder / Path(file).name)
        program, *arguments = keys["ExecStart"][0].split()
        told = (folder / "remegraph.toml").read_text(encoding="utf-8")
        yield Started(path.stem, [Path(program).name, *arguments], env, told)


def _variables(path: Path) -> Mapping[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE))
