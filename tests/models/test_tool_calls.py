"""Whether a tool call failed, and which errors are one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.models.tools import call_digest, error_kind, error_line, outcome, without_values
from tests.models.records import ANY_TEXT

pytestmark = pytest.mark.requirement("R12")

FAILURES = [
    "Error: payment method not found",
    "  error:no such file",
    "ValueError: invalid literal for int()",
    "openai.RateLimitError: slow down",
    "Error executing tool search with kwargs {}",
    "Traceback (most recent call last):\n  File ...\nKeyError: 'a'",
    "Failed to connect to host",
    "FAILED.",
    "Unable to open the page",
    "HTTP/1.1 503 Service Unavailable",
    "HTTP 404",
    '{"error": "not found"}',
    '{"ok": false}',
    '{"success": false, "message": "no rights"}',
    '{"status": "error", "detail": "quota"}',
    '{"isError": true, "content": []}',
    '{"errors": [{"message": "bad field"}], "data": null}',
    "错误：没有找到该订单",
    "查询失败：网络超时",
    "调用异常，请稍后重试",
    "请求超时",
    "无法连接到服务器",
    '{"成功": false}',
]
RESULTS = [
    "It is blue now.",
    "The error was fixed yesterday.",
    "404 results were found",
    "Errors in the log: 12",
    "errorless",
    "No error: all went well",
    "Failure modes of bridges, a history",
    '{"error": null, "price": 3}',
    '{"errors": [{"line": 3}], "file": "a.py"}',
    '{"status": "available", "ok": true}',
    "{not JSON, but: error}",
    "[1, 2]",
    "订单已经取消，没有错误",
    "失败率为 3%",
    "这条错误信息已经记录在系统的日志里：12 条",
]


@pytest.mark.parametrize("text", FAILURES)
@pytest.mark.parametrize("told", [True, None])
def test_the_text_of_an_error_is_a_failure_whatever_the_framework_says(text: str, told: bool | None) -> None:
    """Frameworks call every result that a tool returns a success; tools return their errors."""
    assert outcome(text, told=told) is False


@pytest.mark.parametrize("text", RESULTS)
def test_a_result_that_speaks_of_errors_is_none(text: str) -> None:
    """A tool that reads logs must not look broken."""
    assert outcome(text, told=True) is True
    assert outcome(text, told=None) is True


@pytest.mark.parametrize("text", [*FAILURES, *RESULTS, ""])
def test_what_the_host_calls_a_failure_is_one(text: str) -> None:
    """It knows what was raised."""
    assert outcome(text, told=False) is False


def test_nothing_that_came_back_tells_nothing() -> None:
    """No result is no success, unless the host says so."""
    assert outcome(" ", told=None) is None
    assert outcome("", told=True) is True


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Error: a\nb", "Error: a"),
        ("Traceback (most recent call last):\n  File x\nKeyError: 'a'", "KeyError: 'a'"),
        ('{"error": {"message": "no seats", "code": 3}}', "no seats"),
        ('{"errors": ["one", "two"]}', '"one"'),
        ('{"ok": false, "detail": "quota"}', "quota"),
        ('{"ok": false}', '{"ok": false}'),
        ("x" * 300, "x" * 200),
    ],
)
def test_an_error_is_told_in_one_line(text: str, line: str) -> None:
    """The line that says what it is; the rest is in the message."""
    assert error_line(text) == line


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        (
            ["total price is 305, but paid 255", "total price is 4875.50, but paid 1,625"],
            "total price is <n>, but paid <n>",
        ),
        (
            ["payment method certificate_7504069 not found", "payment method gift_card_8190333 not found"],
            "payment method <id> not found",
        ),
        (["no file /home/ann/a.txt", "no file ~/b/c.md", r"no file C:\x\y"], "no file <path>"),
        (["GET https://a.example/1?q=x failed", "GET http://b.example failed"], "GET <url> failed"),
        (["KeyError: 'ann'", 'KeyError: "bob"'], "KeyError: <value>"),
        (["job 4f0c9a2e-77aa-4c1b-9c11-0a8b7d6e5f40 is gone", "job 1b2c is gone"], "job <id> is gone"),
        (["ann@example.org is unknown", "b.c@d.example is unknown"], "<address> is unknown"),
        (["订单12345不存在", "订单678不存在"], "订单<n>不存在"),
        (["timeout  after\t30 s", "timeout after 5 s"], "timeout after <n> s"),
    ],
)
def test_errors_that_differ_in_values_alone_are_one_kind(errors: list[str], kind: str) -> None:
    """Counted apart, the most frequent error of a tool would never show."""
    assert {error_kind(error) for error in errors} == {kind}


def test_errors_that_differ_in_words_are_two_kinds() -> None:
    """Each has its own cure."""
    assert error_kind("payment method not found") != error_kind("payment method certificate_1 not found")


def test_a_task_is_told_without_its_values() -> None:
    """Whose number it is does not tell which tool to take."""
    assert without_values("Which flights does reservation SDZ9KO have on 2024-05-20?") == (
        "Which flights does reservation have on ?"
    )


@given(ANY_TEXT, st.none() | st.booleans())
def test_any_text_is_judged_and_told(text: str, told: bool | None) -> None:
    """Tools return anything."""
    if outcome(text, told=told) is False:
        assert len(error_line(text)) <= 200
    assert len(error_kind(error_line(text))) <= 120


def test_deep_json_is_no_reason_to_break() -> None:
    """A hostile result must not cost the record of the call."""
    assert outcome('{"a":' * 100_000, told=True) is True


@given(st.dictionaries(ANY_TEXT, st.integers() | ANY_TEXT, max_size=4))
def test_the_order_of_arguments_does_not_count(args: dict[str, object]) -> None:
    """The same call twice is a repeat, however it was written."""
    turned = dict(reversed(args.items()))
    assert call_digest("t", args) == call_digest("t", turned) == call_digest("t", json.loads(json.dumps(args)))
    assert call_digest("t", args) != call_digest("u", args)
    assert call_digest("t", {**args, "more": 1}) != call_digest("t", args) or args.get("more") == 1
