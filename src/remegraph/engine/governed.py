"""What a statement says of itself as governance has it: its class, where it applies, what it replaces (G3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from remegraph.errors import InputError
from remegraph.models import EnforcementLevel, Memory, MemoryClass, Partition, Scope
from remegraph.rules.slots import canonical
from remegraph.rules.summarising import SUMMARY_LIMIT, length, summary_of

__all__ = ["UNGOVERNED", "Governed"]


@dataclass(frozen=True, slots=True)
class Governed:
    """The optional fields of the governance protocol's schema, as they were given."""

    summary: str = ""
    memory_class: MemoryClass = "episodic"
    enforcement_level: EnforcementLevel | None = None
    applies_to: str = ""
    canonical_topic: str = ""
    supersedes: tuple[str, ...] = ()
    slot_value: str = ""
    slot_many: bool = False

    def check(self, scope: Scope, *, by_model: bool = False) -> None:
        """Refuse what cannot be used.

        Args:
            scope: Who states it.
            by_model: Whether a model states it: it replaces nothing by name, nor speaks for other projects.

        Raises:
            InputError: A value is none of those that there are, or they do not go together.
        """
        for name, value, kind in (
            ("memory_class", self.memory_class, MemoryClass),
            ("enforcement_level", self.enforcement_level, EnforcementLevel),
        ):
            if value is not None and value not in get_args(kind):
                raise InputError(f"There is no {name} {value!r}.", f"Give one of {', '.join(get_args(kind))}.")
        if self.enforcement_level is not None and self.memory_class != "policy":
            raise InputError(
                f"enforcement_level is for policies, and this is {self.memory_class}.",
                'Give memory_class="policy", or leave it out.',
            )
        if length(self.summary) > SUMMARY_LIMIT:
            raise InputError(
                f"The summary has {length(self.summary)} words.", f"Give {SUMMARY_LIMIT} at most, or leave it out."
            )
        if not self.slot() and (self.slot_value or self.slot_many):
            raise InputError(
                "A value is given, and no slot.", "Name the slot: whose and which attribute, as ann:lives_in."
            )
        if by_model and self.supersedes:
            raise InputError("A model names what it replaces.", "Only a person does: leave supersedes out.")
        self._check_place(scope, by_model=by_model)

    def _check_place(self, scope: Scope, *, by_model: bool) -> None:
        kind, _, name = self.applies_to.partition(":")
        if kind not in {"", "global", "project", "lang"} or bool(name.strip()) != (kind in {"project", "lang"}):
            raise InputError(
                f"applies_to is {self.applies_to!r}.", "Write it as global, project:<name> or lang:<name>."
            )
        if kind == "project" and name != scope.project:
            raise InputError(
                f"applies_to is {self.applies_to!r}, and the scope is not of that project.",
                f"Save it with Scope(..., project={name!r}).",
            )
        if kind == "global" and by_model and scope.project is not None:
            raise InputError("A model speaks for all projects.", "Only a person does: leave applies_to out.")

    def place(self, home: Partition) -> Partition:
        """Return where it lives: what applies everywhere, in no project.

        Args:
            home: Where it would live otherwise.
        """
        return home.evolve(project=None) if self.applies_to == "global" else home

    def slot(self) -> str:
        """Return the canonical topic as it is compared; empty where none was given."""
        return canonical(self.canonical_topic)

    def fields(self, content: str, partition: Partition) -> dict[str, Any]:
        """Return the fields of a new memory, what was not given filled in.

        Args:
            content: What it says.
            partition: Where it lives.
        """
        binding = self.enforcement_level or ("soft" if self.memory_class == "policy" else None)
        return {
            "summary": self.summary.strip() or summary_of(content),
            "memory_class": self.memory_class,
            "enforcement_level": binding,
            "applies_to": self._language() or partition.applies_to,
            "canonical_topic": self.slot(),
            "slot_value": self.slot_value.strip(),
            "slot_many": self.slot_many,
        }

    def confirmed(self, old: Memory) -> dict[str, Any]:
        """Return the fields of a memory that is stated again: its slot if it had none; as a policy, it becomes one.

        Args:
            old: The memory.
        """
        fields: dict[str, Any] = {}
        if self.slot() and not old.canonical_topic:
            fields = {
                "canonical_topic": self.slot(),
                "slot_value": self.slot_value.strip(),
                "slot_many": self.slot_many,
            }
        if self.memory_class != "policy":
            return fields
        level = self.enforcement_level or old.enforcement_level or "soft"
        return fields | {"memory_class": "policy", "enforcement_level": level}

    def _language(self) -> str:
        """Return `lang:<name>` as it is compared; empty where it applies to any."""
        kind, _, name = self.applies_to.partition(":")
        return f"lang:{name.strip().casefold()}" if kind == "lang" else ""


UNGOVERNED = Governed()
"""Nothing was given."""
