"""What is private in a text is found, and placeholders take its place."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remegraph.errors import InputError, MissingExtraError
from remegraph.text import desensitization, personal
from remegraph.text.desensitization import LONGEST, Placeholders, desensitize, findings
from remegraph.text.findings import KINDS, Finding, folded, united

_PIECES = st.sampled_from(
    [
        *"""password密码 is 是 : = " ' ( ) <email-1> <phone-12> < > a@b.com 13800138000 4111111111111111 10.0.0.1 hunter22 名 王小明
    Ann Lee Ann's GB82WEST12345698765432 078-05-1120 https://a.b/c?d=e /home/a/b C:\\a\\b \\\\a\\b :: 1 0 - . , ， 。 \x1f \u200b １ é
    sk-aaaaaaaaaaaaaaaaaaaa token server db-1 order no 京A12345 born 2001-01-01 (at) dot com 点 北京路1号 12 Main Street""".split(),
        " ",
        "\n",
    ]
)
_HOSTILE = st.lists(_PIECES | st.text(max_size=3), max_size=30).map("".join)
_NAMES = ("Ann Lee", "王小明", "a b", "<email-2>")


def kinds(text: str, *names: str) -> list[tuple[str, str]]:
    return [(each.kind, text[each.start : each.end]) for each in findings(text, names=names)]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Write to ann.lee+x@mail.example.co.uk.", "email", "ann.lee+x@mail.example.co.uk"),
        ("邮箱wang@qq.com和电话", "email", "wang@qq.com"),
        ("ann (at) example dot com", "email", "ann (at) example dot com"),
        ("全角ａｎｎ＠ｅｘａｍｐｌｅ．ｃｏｍ也一样", "email", "ａｎｎ＠ｅｘａｍｐｌｅ．ｃｏｍ"),
        ("Call (212) 555-0123 x45 now", "phone", "(212) 555-0123 x45"),
        ("call me at 2125550123", "phone", "2125550123"),
        ("+44 20 7946 0018 is London", "phone", "+44 20 7946 0018"),
        ("手机138-0013-8000", "phone", "138-0013-8000"),
        ("手机１３８００１３８０００", "phone", "１３８００１３８０００"),
        ("手机١٣٨٠٠١٣٨٠٠٠", "phone", "١٣٨٠٠١٣٨٠٠٠"),
        ("1\u200b3800138000", "phone", "1\u200b3800138000"),
        ("座机010-62781234", "phone", "010-62781234"),
        ("paid 4111 1111 1111 1111 today", "card", "4111 1111 1111 1111"),
        ("room 12 4111 1111 1111 1111", "card", "4111 1111 1111 1111"),
        ("卡号6222021234567890128到账", "card", "6222021234567890128"),
        ("to GB82 WEST 1234 5698 7654 32.", "iban", "GB82 WEST 1234 5698 7654 32"),
        ("SSN 078-05-1120", "ssn", "078-05-1120"),
        ("身份证11010519491231002X。", "cn-id", "11010519491231002X"),
        ("旧证110105491231002", "cn-id", "110105491231002"),
        ("on 192.168.7.21:5432 it runs", "ip", "192.168.7.21:5432"),
        ("from 2001:db8::8a2e:370:7334 in", "ip", "2001:db8::8a2e:370:7334"),
        ("MAC 00-1B-44-11-3A-B7", "mac", "00-1B-44-11-3A-B7"),
        ("车牌京A·12345", "plate", "京A·12345"),
        ("新能源粤BD12345停着", "plate", "粤BD12345"),
        ("passport no. E12345678", "passport", "E12345678"),
        ("She was born on March 7, 1990.", "birth-date", "March 7, 1990"),
        ("1990年3月7日出生", "birth-date", "1990年3月7日"),
        ("她的生日是在三月七日", "birth-date", "三月七日"),
        ("my password is hunter2!", "password", "hunter2!"),
        ("密码是abc123，别忘了", "password", "abc123"),
        ("口令：芝麻开门", "password", "芝麻开门"),
        ('{"password": "a b\'c"}', "password", "a b'c"),
        ("DB_PASSWORD=swordfish", "password", "swordfish"),
        ("验证码 839201", "password", "839201"),
        ("AKIAIOSFODNN7EXAMPLE", "key", "AKIAIOSFODNN7EXAMPLE"),
        ("密钥：9f8e7d6c5b4a39281706", "key", "9f8e7d6c5b4a39281706"),
        ("use postgres://ann:pw@db.example.com/x", "key", "postgres://ann:pw@db.example.com/x"),
        ("https://ann:pw@example.com/x", "email", "ann:pw@example.com"),
        ("https://ann:pw@db-1/x", "url", "https://ann:pw@db-1/x"),
        ("https://example.com/x?user=7", "url", "?user=7"),
        ("see http://intranet/wiki.", "url", "http://intranet/wiki"),
        ("host db-02.corp.local is down", "host", "db-02.corp.local"),
        ("in /home/ann/notes.txt,", "path", "/home/ann/notes.txt"),
        (r"C:\Program Files\app\a.log", "path", r"C:\Program Files\app\a.log"),
        (r"\\fs01\team\plan.xlsx", "path", r"\\fs01\team\plan.xlsx"),
        ("session id: 7f3a9c21", "account", "7f3a9c21"),
        ("会话ID：7f3a9c21，", "account", "7f3a9c21"),
        ("订单号202401011234", "account", "202401011234"),
        ("She lives at 12 Main Street, Apt 4.", "address", "12 Main Street, Apt 4"),
        ("住在朝阳区建国路88号2单元301室", "address", "朝阳区建国路88号2单元301室"),
    ],
)  # fmt: skip
def test_what_is_private_is_found_whole(text: str, kind: str, value: str) -> None:
    """A part of a card number that stays is a leak, too."""
    assert (kind, value) in kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "The total is 1,234.50, order more.", "Use version 1.2.3.4 or v10.0.0.1.", "At 10:20:30, step 12 of 14.",
        "ISBN 978-0-306-40615-7", "Card 4111 1111 1111 1112 fails Luhn.", "commit 9f8e7d6c5b4a392817069f8e7d6c5b4a39281706",
        "Codes 000-12-3456 and 666-12-3456 were never given out.", "GB82 WEST 1234 5698 7654 33", "编号11010519491231003X不对",
        "Read https://docs.python.org/3/library/re.html#flags first.", "std::vector, face::feed", "either/or and/or GET /v1/users",
        "The password is required; the token is optional.", "password: ******** or ${PASSWORD}", "密码：请输入八位，密码是必填的。", "密码是大家都知道的那个",
        "On 7 March 1990 it rained.", "1990年3月7日下雨", "Unix time 1700000000 and 1700000000000", "The account grew by 1200 percent.",
        "meet me at example.com", "I look at polka dot dresses", "我喜欢北京的路。", "max_tokens: 2000",
    ],
)  # fmt: skip
def test_what_is_public_stays(text: str) -> None:
    """Knowledge without its versions, times and links is worth little."""
    assert kinds(text) == []


def test_known_names_go_in_every_form_and_ordinary_words_stay() -> None:
    """Nothing but the caller knows who is who; a surname that is a verb must not empty the text of it."""
    text = "WILL SMITH's plan: will Smith ask will-smith? José knew. 小明 and 王小明说"
    found = kinds(text, "Will Smith", "Jose Ruiz", "王小明")
    assert [value for _, value in found] == ["WILL SMITH", "will Smith", "will-smith", "José", "小明", "王小明"]
    assert kinds("我和Ann去，王小明Ann", "Ann") == [("name", "Ann"), ("name", "Ann")]
    assert kinds("I will see a smithy", "Will Smith") == []
    assert kinds("the thread of user-7 and User-71", "thread-12", "user-7") == [("name", "user-7")]


def test_the_same_value_has_the_same_placeholder_in_a_whole_share() -> None:
    """Who reads "<phone-1> calls <phone-2>" still sees that there are two."""
    first = desensitize("手机13800138000或+1 212 555 0123, a@b.com")
    second = desensitize("138 0013 8000; A@b.com; c@d.com", table=first.table)
    assert first.text == "手机<phone-1>或<phone-2>, <email-1>"
    assert second.text == "<phone-1>; <email-1>; <email-2>"
    assert second.removed == {"phone": 1, "email": 2}
    assert "138" not in repr(first)


def test_a_placeholder_that_stands_there_already_is_given_to_nobody_else() -> None:
    """Otherwise two people would become one."""
    assert desensitize("<email-1> knows a@b.com").text == "<email-1> knows <email-2>"


@given(_HOSTILE)
@example("password: <email-1>hunter22")
@example("a@b.com/home/a/b")
def test_cleaning_once_more_changes_nothing(text: str) -> None:
    """What is checked before it leaves must pass its own check."""
    cleaned = desensitize(text, names=_NAMES)
    assert findings(cleaned.text, names=_NAMES) == ()
    assert desensitize(cleaned.text, names=_NAMES).text == cleaned.text


@given(
    st.lists(
        st.builds(lambda a, n, k: Finding(a, a + n, k), st.integers(0, 40), st.integers(1, 9), st.sampled_from(KINDS))
    )
)
def test_of_what_overlaps_no_part_is_left(found: list[Finding]) -> None:
    """Two recognisers that see different halves of a secret must not save one of them."""
    kept = united(found)
    assert {at for each in found for at in range(each.start, each.end)} == {
        at for each in kept for at in range(each.start, each.end)
    }
    assert all(left.end <= right.start for left, right in pairwise(kept))


_REPEATED = (
    "1 ", "1-1-", "a@", "a@b.", "a.", "+1 ", "/a", "/home/", "C:\\a", "\\\\a\\", "aa:", "1:", "eyJaaaaaaaa.eyJ", "password: a",
    "-----BEGIN PRIVATE KEY-----\n", "server a1-", "http://a@", "路1号", "1 Ab ", "a at b dot ", '"', "Ann ", "王小明", "\u200b", "é",
    "密码是", "session id ", "x://a:b", "~/", "00 ",
)  # fmt: skip


@pytest.mark.parametrize("size", [100, pytest.param(2_000, marks=pytest.mark.slow)])
def test_the_work_grows_with_the_text_and_no_faster(size: int) -> None:
    """A text made to hang a pattern would stop the agent that shares it."""
    recognisers: list[Callable[[str], object]] = [
        *desensitization._RECOGNISERS,
        partial(personal.names, known=_NAMES),
        folded,
    ]
    grown = {
        (str(recognise), seed): _work(recognise, seed * (16 * size // len(seed)))
        / _work(recognise, seed * (size // len(seed)))
        for recognise in recognisers
        for seed in _REPEATED
    }
    assert {which: ratio for which, ratio in grown.items() if ratio > 22} == {}


def _work(recognise: Callable[[str], object], text: str) -> float:
    """Return processor time, the least of two, and a little for what is not the text's."""

    def once() -> float:
        begun = time.process_time()
        found = recognise(text)
        deque(found if isinstance(found, Iterator) else (), maxlen=0)
        return time.process_time() - begun

    return min(once(), once()) + 0.002


def test_too_long_a_text_is_refused() -> None:
    """It says so, instead of being searched for minutes."""
    with pytest.raises(InputError, match="too long"):
        findings("a" * (LONGEST + 1))


def test_without_the_telephone_package_nothing_is_called_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that cannot be made has not been passed."""
    monkeypatch.setattr(personal, "import_module", lambda name: __import__(f"no_{name}"))
    personal._phonenumbers.cache_clear()
    with pytest.raises(MissingExtraError, match=r"remegraph\[sharing\]"):
        desensitize("call +49 30 123456")
    personal._phonenumbers.cache_clear()


def test_placeholders_are_counted_by_kind_and_run_out_loudly() -> None:
    """No two values share one, however many there are."""
    table = Placeholders()
    assert len({table.of("email", f"{at}@b.com") for at in range(1000)}) == len(table) == 1000
    assert Counter(table.of(kind, "x") for kind in KINDS) == Counter(
        [*(f"<{kind}-1>" for kind in KINDS if kind != "email"), "<email-1001>"]
    )
