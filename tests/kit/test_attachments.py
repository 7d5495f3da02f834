"""Attachments on their way through a kit: kept, marked, read, and never taken for what the user said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remegraph import MemoryKit, MessageError, NotFoundError, Scope, Settings, SetupError, SummaryPolicy
from remegraph.errors import InvalidAnswerError, ModelUnavailableError
from remegraph.kit import OpenOptions
from remegraph.settings import PerceptionPolicy
from remegraph.testing import FrozenClock, InMemoryVectorIndex, ModelCall, ScriptedChatModel, SequentialIds
from tests.pictures import PNG, TEXT, b64, image, png, sha, text_file
from tests.talk import ANN, NOON, create, digest, open_kit, proposal, said

pytestmark = pytest.mark.requirement("K3")

BOB = Scope(user="bob", agent="remy")


def shows(words: str, *blocks: dict[str, Any], minutes: int = 0, **fields: Any) -> Any:
    """A message of a user that shows something."""
    return said([{"type": "text", "text": words}, *blocks], minutes=minutes, **fields)  # type: ignore[arg-type]


def seeing(home: Path, script: dict[str, Any], **policy: Any) -> MemoryKit:
    """A kit whose model can look at pictures."""
    settings = Settings(
        home=home,
        summary=SummaryPolicy(backoff=0, retries=0, reviser="rules"),
        perception=PerceptionPolicy(**{"reads": frozenset({"image"}), **policy}),
    )
    return MemoryKit.open(
        settings=settings,
        model=ScriptedChatModel(script=script),
        embedder=None,
        index=InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
        options=OpenOptions(new_id=SequentialIds()),
    )


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A kit without a model; each test has a user of its own."""
    with open_kit(tmp_path_factory.mktemp("home")) as opened:
        yield opened


def blobs(home: Path) -> list[Path]:
    return [path for path in (home / "blobs").rglob("*") if path.is_file()]


# ---------------------------------------------------------------------------------------------- kept


def test_a_picture_goes_from_add_to_recall_and_trace_and_comes_back_to_the_letter(kit: MemoryKit) -> None:
    """The whole promise in one run, without a model: kept by reference, found by its name, and not read."""
    ann = Scope(user="round")
    photo = image(extras={"filename": "bicycle.png"})
    receipt = kit.add_messages([shows("I own a scarlet bicycle.", photo)], scope=ann)
    kit.summarize(scope=ann, close=True)

    mark = f"[image: bicycle.png, {len(PNG)} B, not read]"
    (hit,) = kit.recall("bicycle.png", scope=ann, depth="messages").messages
    assert hit.text == f"Ann: I own a scarlet bicycle. {mark}"
    (entry,) = kit.sources.blocks(scope=ann)
    assert entry.summary.endswith(mark)
    (memory,) = kit.memories(scope=ann)
    assert "bicycle" in memory.content
    assert "image" not in memory.content
    trace = kit.trace(memory.memory_id, scope=ann)
    (message,) = trace.messages
    assert message.message_id == receipt.message_ids[0]
    assert kit.sources.attachment(message.attachments[0].sha256, scope=ann) == PNG
    assert kit.sources.with_attachments(trace.messages, scope=ann)[0].content[1] == photo


def test_the_ledger_does_not_grow_with_an_attachment(tmp_path: Path) -> None:
    """Pictures in SQL rows make every backup, and every read of a thread, a hundred times as large."""
    sizes: list[int] = []
    for size in (0, 4_000_000):
        home = tmp_path / str(size)
        with open_kit(home) as kit:
            kit.add_messages([shows("Look.", image(PNG + bytes(size)))], scope=ANN)
        sizes.append(sum(path.stat().st_size for path in home.glob("ledger*")))
    assert sizes[1] - sizes[0] <= 4096
    assert len(blobs(tmp_path / "4000000")) == 1


async def test_a_stranger_gets_no_bytes_whatever_hash_she_knows(kit: MemoryKit) -> None:
    """A hash may be guessed from a public file: whether somebody holds that file is nobody's business."""
    ann, eve = Scope(user="owner"), Scope(user="eve")
    kit.add_messages([shows("Look.", image(png(7)))], scope=ann)
    known = {"kind": "image", "sha256": sha(png(7)), "path": ["base64"], "prefix": ""}
    kit.add_messages([shows("Mine.", {"type": "image", "attachment": known})], scope=eve)

    with pytest.raises(NotFoundError):
        kit.sources.attachment(sha(png(7)), scope=eve)
    with pytest.raises(NotFoundError):
        await kit.sources.aattachment("../../ledger.sqlite", scope=ann)
    (forged,) = kit.messages("main", scope=eve)
    assert kit.sources.with_attachments([forged], scope=eve) == (forged,)
    assert await kit.sources.aattachment(sha(png(7)), scope=ann) == png(7)


def test_the_same_message_again_is_known_with_its_bytes(kit: MemoryKit) -> None:
    """A retry after a lost answer must not make a second message, nor be refused as another."""
    ann = Scope(user="again")
    message = shows("Look.", image(), message_id="m1")
    assert kit.add_messages([message], scope=ann).added == 1
    assert kit.add_messages([message], scope=ann).known == 1


@pytest.mark.parametrize("block", [image(TEXT), image() | {"base64": "*"}], ids=["mime", "base64"])
def test_a_bad_file_is_refused_at_the_door_and_changes_nothing(kit: MemoryKit, block: dict[str, Any]) -> None:
    """Half a batch with a broken picture would have to be found again by hand."""
    ann = Scope(user="refused")
    with pytest.raises(MessageError, match="Message 1: The attachment"):
        kit.add_messages([said("Hello."), shows("Look.", block)], scope=ann)
    assert kit.messages("main", scope=ann) == ()
    assert kit.admin.examine().findings == ()


def test_capture_keeps_a_turn_whose_file_is_refused_and_says_so(kit: MemoryKit) -> None:
    """Hosts give the whole thread after each turn: an error would end all memory of this thread."""
    ann = Scope(user="captured")
    turn = shows("I own a scarlet bicycle.", image(TEXT), message_id="m1")
    assert kit.capture([turn], scope=ann).added == 1
    assert kit.capture([turn], scope=ann).known == 1

    (message,) = kit.messages("main", scope=ann)
    assert message.text == "I own a scarlet bicycle."
    assert "its bytes are not" in message.attachments[0].refused


def test_a_ledger_on_a_server_needs_a_folder_that_somebody_named(tmp_path: Path) -> None:
    """A folder in the home of one machine of many would lose the files of all others."""
    url = f"sqlite:///{tmp_path / 'elsewhere.sqlite'}"  # any ledger by its URL

    def opened(**settings: Any) -> MemoryKit:
        key = "of all ledgers in these tests"
        return MemoryKit.open(
            settings=Settings(ledger_url=url, journal_key=key, **settings), embedder=None, index=InMemoryVectorIndex()
        )

    with opened() as kit, pytest.raises(SetupError, match="no folder for attachments"):
        kit.add_messages([shows("Look.", image())], scope=ANN)
    with opened() as kit:
        assert kit.capture([shows("Look.", image())], scope=ANN).added == 1
        assert "no folder" in kit.messages("main", scope=ANN)[0].attachments[0].refused
    with opened(perception=PerceptionPolicy(folder=tmp_path / "shared")) as kit:
        kit.add_messages([shows("Look.", image())], scope=ANN)
        assert kit.sources.attachment(sha(PNG), scope=ANN) == PNG


def test_verify_and_recall_say_that_bytes_are_lost_and_go_on(tmp_path: Path) -> None:
    """A folder that was left out of a backup must be noticed, and must not cost the memories."""
    with seeing(tmp_path, {"DigestAnswer": digest(), "DescribeAnswer": {"descriptions": []}}) as kit:
        kit.add_messages([shows("Look at my scarlet bicycle.", image())], scope=ANN)
        (path,) = blobs(tmp_path)
        path.unlink()
        assert [each.where for each in kit.admin.verify().differences] == ["attachments"]
        with pytest.raises(SetupError, match="backup"):
            kit.sources.attachment(sha(PNG), scope=ANN)
        kit.summarize(scope=ANN, close=True)
        (hit,) = kit.recall("scarlet", scope=ANN, depth="messages").messages
        assert "not read" in hit.text


def test_an_examination_finds_and_removes_what_nobody_holds(tmp_path: Path) -> None:
    """What a crash left behind costs disk for ever otherwise, and nobody looks for what they do not know of."""
    with open_kit(tmp_path) as kit:
        kit.add_messages([shows("Look.", image())], scope=ANN)
        kit.context.parts().archive.attachments._folder.put(sha(TEXT), TEXT)  # type: ignore[union-attr]

        (found,) = kit.admin.examine().findings
        assert (found.check, found.severity, found.fixable) == ("attachments", "note", True)
        assert len(blobs(tmp_path)) == 2
        assert kit.admin.examine(fix=True).findings[0].done == "removed 1 file"
        assert kit.admin.examine().findings == ()
        assert [path.name for path in blobs(tmp_path)] == [sha(PNG)]


# ---------------------------------------------------------------------------------------------- read


def test_a_text_file_is_read_without_a_model_and_found_by_its_words(kit: MemoryKit) -> None:
    """Words need nobody to look at them; but they are the document's, not the user's."""
    ann = Scope(user="reader")
    kit.add_messages([shows("Please read this.", text_file())], scope=ann)
    kit.summarize(scope=ann, close=True)

    (hit,) = kit.recall("anchovies", scope=ann, depth="messages").messages
    assert "[file: offers.md, 56 B: Anchovies are on offer" in hit.text
    assert [memory.content for memory in kit.memories(scope=ann)] == ["Ann: Please read this."]  # what she said herself


def test_text_beyond_the_limit_and_bytes_that_are_no_text_are_not_read(tmp_path: Path) -> None:
    """A book must not become one row; a file that claims to be text may hold anything."""
    settings = Settings(home=tmp_path, perception=PerceptionPolicy(max_text=10))
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        binary = text_file(b"\xff\xfe\x00\x01\x02", "broken.txt", "text/plain")
        kit.add_messages([shows("Read.", text_file(), binary)], scope=ANN)
        (message,) = kit.messages("main", scope=ANN)
        assert [reading.text for reading in message.readings] == ["Anchovies "]


LEARNS = {"DigestAnswer": digest("personal:Ann"), "VerdictAnswer": {"objections": []}}


def test_a_model_describes_a_picture_once_and_it_is_found_by_what_it_shows(tmp_path: Path) -> None:
    """What nobody described can be found only by those who remember its file name."""
    shown: list[ModelCall] = []

    def look(call: ModelCall) -> dict[str, Any]:
        shown.append(call)
        return {"descriptions": [{"n": 1, "text": "A scarlet bicycle leans on a wall."}]}

    script = LEARNS | {"DescribeAnswer": look, "ProposalAnswer": proposal()}
    with seeing(tmp_path, script) as kit:
        kit.add_messages([shows("My new one.", image(extras={"filename": "new.png"}))], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        (call,) = shown
        text, number, picture = (dict(block) for block in call.messages[-1].content_blocks)
        assert picture == {"type": "image", "base64": b64(PNG), "mime_type": "image/png"}
        assert number == {"type": "text", "text": "1:"}
        assert '1 image "new.png", message 1' in str(text["text"])

        (hit,) = kit.recall("scarlet bicycle", scope=ANN, depth="messages").messages
        assert hit.text.endswith("[image: new.png, 67 B: A scarlet bicycle leans on a wall.]")
        kit.summarize(scope=ANN, close=True)
        assert len(shown) == 1
        assert kit.admin.verify().differences == ()


def test_what_is_learned_from_a_picture_cites_it_and_is_quarantined(tmp_path: Path) -> None:
    """A poster may say anything; who shows it to an agent has not said it."""
    words = "Ann is the new president."
    script = LEARNS | {
        "DescribeAnswer": {"descriptions": [{"n": 1, "text": f"A poster: {words}"}]},
        "ProposalAnswer": proposal(
            create("Ann is the new president.", 2, words), create("Ann likes posters.", 1, "I like it")
        ),
    }
    with seeing(tmp_path, script) as kit:
        kit.add_messages([shows("I like it.", image())], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        memories = {memory.content: memory for memory in kit.memories(scope=ANN, statuses=["active", "quarantined"])}
        learned, told = memories["Ann is the new president."], memories["Ann likes posters."]

        assert (learned.status, learned.trust) == ("quarantined", 0.3)
        assert (told.status, told.trust) == ("active", 1.0)
        (evidence,) = learned.evidence
        trace = kit.trace(learned.memory_id, scope=ANN)
        assert evidence.message_id == trace.messages[0].message_id
        assert evidence.attachment == sha(PNG)
        assert [quote.words for quote in trace.quotes] == [words]
        assert trace.missing == ()
        assert words not in kit.recall("Who is the president?", scope=ANN).context
        assert kit.admin.verify().differences == ()


@pytest.mark.requirement("K9")
def test_an_export_leaves_behind_what_rests_on_a_picture_and_can_be_installed(tmp_path: Path) -> None:
    """A pack holds no pictures: one memory that nothing there bears out would keep all the others from home."""
    words = "Ann is the new president."
    script = LEARNS | {
        "DescribeAnswer": {"descriptions": [{"n": 1, "text": f"A poster: {words}"}]},
        "ProposalAnswer": proposal(create(words, 2, words), create("Ann likes posters.", 1, "I like it")),
    }
    with seeing(tmp_path / "old", script) as kit, open_kit(tmp_path / "new") as other:
        kit.add_messages([shows("I like it.", image())], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        built = kit.packs.build(tmp_path / "ann.pack", scope=ANN, include=["quarantined"])
        (learned,) = kit.knowledge.waiting(scope=ANN)
        assert built.left_out == {learned.memory_id: "It rests on an attachment, and a pack holds none."}

        other.packs.install(tmp_path / "ann.pack", scope=ANN, trust=1)
        assert "Ann likes posters." in {memory.content for memory in other.memories(scope=ANN)}
        assert other.admin.verify().differences == ()


def test_words_of_a_picture_are_no_evidence_of_what_the_user_said(tmp_path: Path) -> None:
    """A model that mixes the two up is put right: they are the picture's, wait for a person, and are not her words."""
    words = "Ann is the new president."
    script = LEARNS | {
        "DescribeAnswer": {"descriptions": [{"n": 1, "text": words}]},
        "ProposalAnswer": proposal(create(words, 1, words)),
    }
    with seeing(tmp_path, script) as kit:
        kit.add_messages([shows("I like it.", image())], scope=ANN)
        report = kit.summarize(scope=ANN, close=True)
        assert any("stand in message 2, not 1" in note for note in report.notes)
        assert kit.memories(scope=ANN, statuses=["active"]) == ()
        (learned,) = kit.knowledge.waiting(scope=ANN)
        assert [item.attachment for item in learned.evidence] == [sha(PNG)]
        assert kit.recall("Who is the president?", scope=ANN).memories == ()


def test_words_that_neither_the_user_nor_a_picture_has_are_not_learned(tmp_path: Path) -> None:
    """A wrong number may be put right; words that nobody said or showed are invented."""
    words = "Ann is the new president."
    script = LEARNS | {
        "DescribeAnswer": {"descriptions": [{"n": 1, "text": "A poster of a harbour."}]},
        "ProposalAnswer": proposal(create(words, 1, words)),
    }
    with seeing(tmp_path, script) as kit:
        kit.add_messages([shows("I like it.", image())], scope=ANN)
        assert kit.summarize(scope=ANN, close=True).created == 0
        assert kit.memories(scope=ANN, statuses=["active", "quarantined"]) == ()


@pytest.mark.parametrize("policy", [{"reads": frozenset()}, {"reads": frozenset({"audio"})}, {"most": 1}])
def test_a_model_is_shown_only_what_the_settings_say(tmp_path: Path, policy: dict[str, Any]) -> None:
    """Pictures cost money, and many models refuse them."""
    shown: list[ModelCall] = []

    def look(call: ModelCall) -> dict[str, Any]:
        shown.append(call)
        return {"descriptions": [{"n": 1, "text": "A dot."}]}

    with seeing(tmp_path, LEARNS | {"DescribeAnswer": look, "ProposalAnswer": proposal()}, **policy) as kit:
        kit.add_messages([shows("I like both.", image(), image(png(1)))], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        (message,) = kit.messages("main", scope=ANN)
        assert len(shown) == len(message.readings) == (1 if "most" in policy else 0)


def test_a_model_that_cannot_read_a_picture_costs_none_of_the_words(tmp_path: Path) -> None:
    """A provider that refuses the picture must not take the conversation with it."""
    script = LEARNS | {
        "DescribeAnswer": InvalidAnswerError("no pictures here"),
        "ProposalAnswer": proposal(create("Ann likes harbours.", 1, "I like harbours")),
    }
    with seeing(tmp_path, script | {"DescribeAnswer": {"descriptions": [{"n": 5, "text": "?"}]}}) as kit:
        kit.add_messages([shows("I like harbours.", image())], scope=ANN)
        report = kit.summarize(scope=ANN, close=True)
        assert report.created == 1
        assert any("attachments not read" in each for each in report.objections)
        assert kit.messages("main", scope=ANN)[0].readings == ()


def test_a_model_that_is_down_is_asked_again_and_what_it_described_is_not_lost(tmp_path: Path) -> None:
    """After a crash between description and memories, nobody pays for the description twice."""
    script = LEARNS | {
        "DescribeAnswer": [
            TimeoutError("down"),
            {"descriptions": [{"n": 1, "text": "A dot."}]},
            AssertionError("twice"),
        ],
        "DigestAnswer": [TimeoutError("down"), digest()],
    }
    with seeing(tmp_path, script) as kit:
        kit.add_messages([shows("I like it very much.", image())], scope=ANN)
        for _ in range(2):
            with pytest.raises(ModelUnavailableError):
                kit.summarize(scope=ANN, close=True)
        assert kit.summarize(scope=ANN, close=True).blocks != ()
        (message,) = kit.messages("main", scope=ANN)
        assert [(reading.text, reading.reader) for reading in message.readings] == [("A dot.", "scripted")]


async def test_async_looks_at_pictures_too_in_the_language_of_the_block(tmp_path: Path) -> None:
    """A Chinese conversation is described in Chinese, by one body for sync and async."""
    shown: list[ModelCall] = []

    def look(call: ModelCall) -> dict[str, Any]:
        shown.append(call)
        return {"descriptions": [{"n": 1, "text": "一辆红色的自行车靠在墙边。"}]}

    script = {"DigestAnswer": digest("personal:Ann"), "DescribeAnswer": look, "ProposalAnswer": proposal()}
    async with seeing(tmp_path, script) as kit:
        photo = image(extras={"filename": "新车.png"})
        await kit.aadd_messages([shows("我喜欢这辆新自行车。", photo)], scope=ANN)
        await kit.asummarize(scope=ANN, close=True)
        assert "你为长期记忆描述一段对话里的附件" in shown[0].text
        (hit,) = (await kit.arecall("红色", scope=ANN, depth="messages")).messages
        assert hit.text.endswith("[图片：新车.png，67 B：一辆红色的自行车靠在墙边。]")


def test_without_a_model_a_chinese_summary_says_what_was_not_read(kit: MemoryKit) -> None:
    """Whoever reads the index must know that there was something."""
    ann = Scope(user="chinese")
    photo = image(extras={"filename": "新车.png"})
    kit.add_messages([shows("我喜欢这辆新自行车。", text_file(TEXT * 20, "b.md"), photo)], scope=ann)
    kit.summarize(scope=ann, close=True)
    (entry,) = kit.sources.blocks(scope=ann)
    assert entry.language == "zh"  # the file is English, and longer
    assert entry.summary.endswith("[图片：新车.png，67 B，未读取]")


def test_what_somebody_did_can_be_found_and_learned_from(tmp_path: Path) -> None:
    """A form that was filled in says as much as a sentence; its slot comes of it as of words."""
    words = "[input: city = Lisbon]"
    script = LEARNS | {"ProposalAnswer": proposal(create("Ann lives in Lisbon.", 1, words, slot="lives_in"))}
    deed = {"type": "interaction", "action": "input", "target": "city", "value": "Lisbon"}
    with open_kit(tmp_path, script, reviser="rules") as kit:
        kit.add_messages([shows("Where I live:", deed)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        (memory,) = kit.memories(scope=ANN)
        (quote,) = kit.trace(memory.memory_id, scope=ANN).quotes
        assert quote.words == words
        assert memory.canonical_topic == "ann:lives_in"
        assert kit.recall("Lisbon", scope=ANN, depth="messages").messages
