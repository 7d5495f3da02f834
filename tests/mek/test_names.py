"""Names that only show by what their bearers do."""

from __future__ import annotations

import pytest

from remegraph.mek.generalization import persons


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Bob said that caches fail. Everybody says so, and the team told Ann.", ["Bob"]),
        ("Deployments fail. Redis keeps a cache.", []),
        ("部署缓存时，王小明建议先预热。小林觉得应在晚上做。", ["王小明", "小林"]),
        ("用户觉得缓存慢。", []),
    ],
)
def test_who_says_or_thinks_is_a_person(text: str, names: list[str]) -> None:
    """A name that begins its sentence, or stands among Chinese words, would otherwise be shared unseen."""
    assert list(persons(text)) == names
