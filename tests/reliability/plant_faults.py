"""Tests the tests: plants one fault at a time in a copy of the sources, and tells which tests notice.

python -m tests.reliability.plant_faults [words of the faults to plant]
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_SECONDS = 300
_REME = "tests/reliability/test_reme_defects.py"
_ERASING = "tests/governance/test_erasing.py"
_ELSEWHERE = "tests/reliability/test_erasing_elsewhere.py"
_POISON = "tests/security/test_poisoning.py"


@dataclass(frozen=True)
class Patch:
    """A piece of a source file, which stands there exactly once, and what it becomes."""

    file: str
    old: str
    new: str

    def apply(self, package: Path) -> None:
        """Change the file.

        Raises:
            LookupError: The piece does not stand there exactly once.
        """
        path = package / self.file
        text = path.read_text(encoding="utf-8")
        if (count := text.count(self.old)) != 1:
            raise LookupError(f"{self.file} holds {self.old!r} {count} times, not once: mend this patch.")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


@dataclass(frozen=True)
class Fault:
    """A mistake that somebody might make, and the tests that are there to notice."""

    name: str
    patches: tuple[Patch, ...]
    tests: tuple[str, ...]


FAULTS = (
    Fault(
        "acknowledge early",
        (
            Patch(
                "kit/capture.py",
                "        screened = parts.wishes.screen(partition, named)\n        receipt = settled(\n",
                "        import threading\n"
                "        threading.Timer(0.2, parts.archive.add_messages, (partition, named, now)).start()\n"
                "        ids, screened = tuple(each.message_id for each in named), ()\n"
                "        return AddReceipt(message_ids=ids, added=len(ids), known=0)\n"
                "        receipt = settled(\n",
            ),
        ),
        (f"{_REME}::test_defect_5_a_kill_before_close_loses_nothing",),
    ),
    Fault(
        "plain BEGIN",
        (Patch("ledger/database.py", '_begin(connection, "BEGIN IMMEDIATE")', '_begin(connection, "BEGIN")'),),
        ("tests/ledger/test_concurrency.py::test_four_processes_lose_nothing_and_leave_no_gaps",),
    ),
    Fault(
        "no expected version",
        (Patch("ledger/commit.py", "if change.expected_version != (head.version if head else 0):", "if False:"),),
        (
            "tests/ledger/test_commit.py::test_a_change_that_follows_another_version_is_a_conflict",
            "tests/ledger/test_concurrency.py::test_of_two_who_change_one_memory_one_is_told",
        ),
    ),
    Fault(
        "prefix match on tenants",  # the rule is kept twice, in SQL and in the models: both must fall
        (
            Patch(
                "ledger/partitions.py",
                'where(partitions.c.tenant == bindparam("tenant"))',
                'where(partitions.c.tenant.startswith(bindparam("tenant")))',
            ),
            Patch(
                "models/scope.py",
                "return self.tenant == scope.tenant and all(",
                "return self.tenant.startswith(scope.tenant) and all(",
            ),
        ),
        ("tests/reliability/test_hostile_tenants.py::test_no_name_reads_what_another_one_said[sqlite]",),
    ),
    Fault(
        "no fence",
        (Patch("ledger/jobs.py", "jobs.c.fence == job.fence, ", ""),),
        ("tests/ledger/test_jobs.py::test_a_lease_that_runs_out_gives_the_job_to_another",),
    ),
    Fault(
        "mark outside the transaction",
        (
            Patch(
                "ledger/commit.py",
                "vectors.mark(self.connection, keys)",
                "LATER.append(keys)",
            ),
            Patch("ledger/commit.py", "\n\ndef commit(", "\nLATER: list[Any] = []\n\n\ndef commit("),
            Patch(
                "ledger/archive.py",
                "return commit(self.database, self.journal, changes, quorum=self._quorum, tombstones=self.tombstones)\n",
                "receipt = commit(self.database, self.journal, changes, quorum=self._quorum, tombstones=self.tombstones)\n"
                "        from remegraph.ledger import vectors\n"
                "        from remegraph.ledger.commit import LATER\n"
                "        with self.database.write() as connection:\n"
                "            while LATER:\n"
                "                vectors.mark(connection, LATER.pop())\n"
                "        return receipt\n",
            ),
        ),
        ("tests/reliability/test_invariants.py::test_a_change_and_its_mark_are_one_transaction",),
    ),
    Fault(
        "no evidence check",
        (
            Patch(
                "ledger/evidence.py",
                "[row for row in rows if _supports(connection, evidence, row)]",
                "rows",
            ),
        ),
        (
            "tests/reliability/test_invariants.py::test_what_a_change_set_says_is_checked_not_believed",
            "tests/ledger/test_commit.py::test_evidence_must_hold",
        ),
    ),
    Fault(
        "stale proposal committed",
        (
            Patch(
                "engine/summarizer.py",
                '        newest, passed = newest_of(state["proposals"]), None\n',
                '        made = {key: one for key, one in state["proposals"].items() if not one.failure}\n'
                "        newest, passed = newest_of(made), None\n",
            ),
        ),
        ("tests/engine/test_summarizer.py::test_what_was_sound_in_a_rejected_proposal_is_kept_when_its_retry_fails",),
    ),
    Fault(
        "add for upsert",
        (Patch("ledger/index/chroma.py", "handle.upsert(", "handle.add("),),
        ("tests/ledger/test_chroma.py::test_writing_an_id_again_replaces_it",),
    ),
    Fault(
        "order by return",
        (
            Patch(
                "ledger/index/indexer.py",
                "        homes, found, rows = self._places(batch, live)\n",
                "        homes, found, rows = self._places(batch, live)\n        found = live\n",
            ),
            Patch(
                "ledger/index/indexer.py", "            self._look_for_all(embedder, home)\n", "            pass\n"
            ),  # it mends that
        ),
        ("tests/reliability/test_invariants.py::test_every_record_gets_its_own_vector_in_whatever_order_sql_answers",),
    ),
    Fault(
        "no tombstone",
        (
            Patch(
                "ledger/commit.py",
                "elif (head is not None and head.status in TOMBSTONES) or (head is None and memory.status in TOMBSTONES):",
                "elif False:",
            ),
            Patch(
                "ledger/commit.py", "not (may_move(head.status, memory.status) or _comes_back(head, change))", "False"
            ),
        ),
        ("tests/ledger/test_commit.py::test_a_tombstone_stays_one",),
    ),
    Fault(
        "trust raised by a summary",
        (Patch("engine/origin.py", "return min((each.trust for each in others), default=1.0)", "return 1.0"),),
        (
            f"{_POISON}::test_what_a_page_says_is_not_shown_unasked_though_a_model_falls_for_it",
            f"{_POISON}::test_a_summary_is_trusted_as_the_least_of_what_it_draws_on",
        ),
    ),
    Fault(
        "trust raised by folding",
        (Patch("models/supersession.py", "trust=min(each.trust for each in all_of_them)", "trust=kept.trust"),),
        ("tests/models/test_twins.py",),
    ),
    Fault(
        "unescaped rendering",
        (Patch("engine/frame.py", "return _ESCAPED.sub(_escape, plain)", "return plain"),),
        ("tests/security/test_rendering.py::test_a_context_reads_back_to_the_same_items_whatever_they_say",),
    ),
    Fault(
        "links left armed",
        (Patch("engine/frame.py", "return disarmed(text) if trust < QUARANTINE_BELOW else text", "return text"),),
        (f"{_POISON}::test_a_person_approves_or_rejects_what_waits",),
    ),
    Fault(
        "quarantine skipped",
        (
            Patch(
                "engine/proposals.py",
                'status="active" if trust >= QUARANTINE_BELOW else "quarantined"',
                'status="active"',
            ),
        ),
        (
            f"{_POISON}::test_what_a_page_says_is_not_shown_unasked_though_a_model_falls_for_it",
            "tests/engine/test_summarizer.py::test_words_of_a_tool_are_quarantined_and_change_nothing_known",
        ),
    ),
    Fault(
        "documents believed",
        (Patch("models/messages.py", "return marked(self.extra, DOCUMENT)", "return False"),),
        (f"{_POISON}::test_a_document_is_told_by_its_mark_wherever_its_host_keeps_it",),
    ),
    Fault(
        "procedures learned unapproved",
        (
            Patch(
                "skills/procedures.py",
                'status: Status = "quarantined" if attempt.doubt else "active"',
                'status: Status = "active"',
            ),
        ),
        ("tests/retention/test_skills.py::test_a_run_that_nobody_asked_for_teaches_nothing_until_somebody_adds_it",),
    ),
    Fault(
        "recalled text learned again",
        (
            Patch(
                "engine/slices.py",
                "return tuple(row for row in rows if not shows_recalled(row) and not _hidden(row))",
                "return tuple(rows)",
            ),
        ),
        (f"{_POISON}::test_what_was_recalled_is_never_learned_again",),
    ),
    Fault(
        "values in errors of the database",
        (
            Patch(
                "ledger/connections.py",
                '"hide_parameters": True,',
                '"hide_parameters": False,',
            ),
        ),
        ("tests/security/test_secrets.py::test_a_database_that_fails_says_what_and_where_and_no_parameters",),
    ),
    Fault(
        "no marks of what was erased",
        (
            Patch(
                "ledger/withheld.py",
                'for mark in connection.execute(_FOUND, {"marks": chunk}).scalars()',
                "for mark in ()",
            ),
        ),
        (
            f"{_ERASING}::test_late_workers_bring_nothing_back[5]",
            f"{_ERASING}::test_a_repeated_import_and_a_replayed_operation_bring_nothing_back",
        ),
    ),
    Fault(
        "late notes written",
        (Patch("ledger/withheld.py", "any(mark in erased and micros(at) <= erased[mark] for mark in each)", "False"),),
        (
            f"{_ELSEWHERE}::test_what_another_process_had_noted_of_a_person_is_not_written_after_the_erasure[sqlite]",
            f"{_ELSEWHERE}::test_what_another_process_had_noted_of_a_thread_is_not_written_after_the_erasure[sqlite]",
        ),
    ),
    Fault(
        "receipt incomplete",
        (Patch("ledger/erasure.py", "left = self._left(plan)", "left: dict[str, int] = {}"),),
        (f"{_ERASING}::test_a_receipt_names_each_place_and_what_a_look_found_left_there",),
    ),
    Fault(
        "files not shredded",
        (Patch("ledger/index/indexer.py", "return left, index.shred()", "return left, True"),),
        (
            "tests/reliability/test_erasing_bytes.py::test_not_a_byte_of_a_message_and_then_of_a_person_is_left_in_any_file",
        ),
    ),
    Fault(
        "stale layout",
        (Patch("ledger/index/fulltext.py", "if erasures != old.erasures:", "if False:"),),
        (f"{_ERASING}::test_a_message_takes_what_was_made_of_it_and_leaves_the_rest",),
    ),
    Fault(
        "stale interning",
        (
            Patch(
                "ledger/partitions.py",
                "numbers = _select(connection, list(by_key))",
                "numbers = {key_of(place): number for number, place in known(connection, by_key.values()).items()}",
            ),
        ),
        (f"{_ERASING}::test_a_person_goes_whole_and_may_come_back_as_a_stranger",),
    ),
    Fault(
        "bytes of attachments kept",
        (Patch("ledger/erasure.py", "unreferenced(remove=True)", "unreferenced()"),),
        (f"{_ELSEWHERE}::test_the_bytes_of_an_attachment_go_where_nobody_else_holds_the_same[sqlite]",),
    ),
    Fault(
        "a door without redaction",
        (Patch("kit/capture.py", ", redactor=self._parts().redactor", ""),),
        ("tests/security/test_redaction.py::test_nothing_private_comes_in_by_any_door[a_turn]",),
    ),
)


def plant(fault: Fault) -> list[str]:
    """Run a fault's tests against a copy of the sources that has it; return the names of those that turned red.

    Raises:
        LookupError: A patch does not fit any more.
        RuntimeError: The tests could not be run at all.
    """
    with tempfile.TemporaryDirectory(prefix="remegraph-fault-") as folder:
        package = Path(folder) / "remegraph"
        shutil.copytree(_ROOT / "src" / "remegraph", package, ignore=shutil.ignore_patterns("__pycache__"))
        for patch in fault.patches:
            patch.apply(package)
        return run(fault.tests, Path(folder))


def run(tests: Iterable[str], sources: Path) -> list[str]:
    """Run tests against the package in a folder; return the names of those that failed.

    Raises:
        RuntimeError: Pytest ended in another way than with tests that passed or failed.
    """
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *tests],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if done.returncode not in (0, 1) or re.search(r"^ERROR ", done.stdout, re.MULTILINE):
        raise RuntimeError(f"The tests did not run:\n{done.stdout}\n{done.stderr}")
    return re.findall(r"^FAILED \S+::(\S+)", done.stdout, re.MULTILINE)


def main(wanted: Sequence[str]) -> int:
    """Plant all faults, or those whose names hold a word; return how many survived."""
    faults = [fault for fault in FAULTS if not wanted or any(word in fault.name for word in wanted)]
    red = run({test for fault in faults for test in fault.tests}, _ROOT / "src")
    print(f"without a fault: {', '.join(red) or 'all green'}", flush=True)
    survivors = 0
    for fault in faults:
        noticed = plant(fault)
        survivors += not noticed
        print(f"{fault.name}: {', '.join(noticed) or 'SURVIVED'}", flush=True)
    print(f"{len(faults) - survivors} of {len(faults)} faults were noticed.")
    return survivors + len(red)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
