"""Which topics a block may go to and a query is about, and how topics are tied (R5, R6, R7).

For a block a model chooses the topics; code decides which exist.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Literal, get_args

from remegraph.models import (
    Link,
    Memory,
    Message,
    Partition,
    Scope,
    Shelf,
    Topic,
    TopicEdge,
    TopicGraph,
    TopicNode,
    TopicType,
)
from remegraph.prompts import Language, load
from remegraph.settings import Settings, SummaryPolicy
from remegraph.text.scripts import language_of, plain
from remegraph.text.tokens import query_tokens

__all__ = [
    "as_known",
    "at_home",
    "called_tools",
    "choose",
    "claims_of",
    "home",
    "own",
    "person",
    "resolve",
    "self_topic",
    "shelves_for",
    "tool_topic",
    "topic_graph",
]

_DESCRIBED = 0.1
"""Added to a topic's best score where a query describes it, or the agent itself ties it to the question."""

_TEXTS = 4096
"""Names and descriptions whose words are kept."""

_GENERIC = frozenset({"assistant", "ai", "bot", "agent", "助手", "机器人"})
"""Names of an assistant that are not a person's."""


def home(scope: Scope, boundary: Literal["user", "agent"]) -> Partition:
    """Return the partition of what is learned: the user's, or the agent's if its users are one team.

    Without an agent there is no team, as it would be shared with all users of all agents.
    """
    own = scope.partition()
    return own if boundary == "user" or scope.agent is None else own.evolve(user=None)


def own(visible: Iterable[Partition], scope: Scope, boundary: Literal["user", "agent"]) -> list[Partition]:
    """Return the visible partitions whose memories this user or their team may change."""
    shared = home(scope, boundary)
    return [each for each in visible if each == shared or each.user == scope.user]


def at_home(scope: Scope, settings: Settings) -> bool:
    """Return whether the caller may change what all agents of the user own: no agent is named, or they are one team."""
    return scope.agent is None or settings.for_agent(scope.agent).library == "shared"


def self_topic(language: Language = "en") -> Topic:
    """Return the shelf of what the agent knows of itself."""
    return _topic("self", "self", language)


def tool_topic(name: str, language: Language = "en") -> Topic:
    """Return the shelf of what is known of a tool."""
    return _topic("tool", name, language)


def _topic(kind: TopicType, name: str, language: Language) -> Topic:
    """Return a topic with a description in the language of the talk that creates it."""
    description = load(f"topic_{kind}", language)
    told = {"name": name} if "name" in description.variables else {}
    return Topic(type=kind, target_name=name, description=description.render(**told)[1])


def as_known(topic: Topic, shelves: Iterable[Shelf]) -> Topic:
    """Return a topic as it is written on its shelf, if there is one: case and outer space do not make another shelf."""
    known = (shelf.topic for shelf in shelves)
    return next((each for each in known if (each.type, each.target) == (topic.type, topic.target)), topic)


def person(message: Message, scope: Scope) -> str | None:
    """Return the person who speaks, or None for the agent, a tool or the system.

    A user without a name is the scope's user; a named assistant that is not the agent is a second person. The author of
    a document does not count as speaking.
    """
    if message.is_document:
        return None
    if message.role == "user":
        return plain(message.name.strip()) or scope.user
    named = plain(message.name.strip())
    if message.role == "assistant" and named and named.casefold() not in _GENERIC | {(scope.agent or "").casefold()}:
        return named
    return None


def called_tools(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the tools called in these messages, in order."""
    return tuple(dict.fromkeys(plain(call.name) for message in messages for call in message.tool_calls if call.name))


def shelves_for(
    scope: Scope, where: Partition, messages: Sequence[Message], existing: Iterable[Shelf], policy: SummaryPolicy
) -> tuple[Shelf, ...]:
    """Return the shelves a block may go to: those that exist, and those that may always be made.

    Always allowed are self, the speakers, the tools called, the tasks the host names, and the
    tasks of the allow-list.
    """
    found = {shelf.topic.key.casefold(): shelf for shelf in existing}
    people = dict.fromkeys(name for message in messages if (name := person(message, scope)))
    tasks = dict.fromkeys([*(plain(message.task) for message in messages if message.task), *policy.allowed_topics])
    language = language_of(" ".join(message.text for message in messages))
    made = [
        self_topic(language),
        *(_topic("personal", name, language) for name in people),
        *(tool_topic(name, language) for name in called_tools(messages)),
        *(_topic("task", name, language) for name in tasks),
    ]
    for topic in made:
        found.setdefault(topic.key.casefold(), Shelf(partition=where, topic=topic))
    return tuple(found.values())


def claims_of(
    query: str,
    shelves: Sequence[Shelf],
    scores: Mapping[Shelf, float],
    itself: Iterable[Memory],
    own_way: Callable[[Shelf], bool],
) -> dict[Shelf, tuple[bool, float]]:
    """Return how strongly each topic claims a query: whether the query names it, and how well the search hit there.

    The claim is stronger if the query describes the topic, by a word that does not describe most of them; and if what
    the agent knows of itself connects it with what is asked. Such a topic is asked even if the search did
    not hit, if it has a Sub Agent of its own, which `own_way` says.
    """
    asked = _words(query)
    told = [_words(memory.content) for memory in itself]
    tied = frozenset().union(*(words - asked for words in told if not words.isdisjoint(asked)))
    described = {
        shelf: asked & (_words(shelf.topic.description) | _described(shelf.topic.type, shelf.topic.target_name))
        for shelf in shelves
    }
    counts = Counter(word for words in described.values() for word in words)
    telling = {word for word, count in counts.items() if 2 * count <= len(shelves)}
    claims: dict[Shelf, tuple[bool, float]] = {}
    for shelf in shelves:
        name, score = _words(shelf.topic.target_name), scores.get(shelf, 0.0)
        more = _DESCRIBED * (not telling.isdisjoint(described[shelf])) + _DESCRIBED * (not tied.isdisjoint(name))
        asked_for = score > 0 or (more > 0 and own_way(shelf))
        claims[shelf] = not name.isdisjoint(asked), score + more if asked_for else 0.0
    return claims


def choose(
    shelves: Sequence[Shelf],
    claims: Mapping[Shelf, tuple[bool, float]],
    topics: Sequence[str] | None,
    *,
    all_of_them: bool,
) -> list[Shelf]:
    """Return the topics that a query goes to, without a model: those asked for; else those with a claim, strongest first.

    With `all_of_them` the others follow: for a question about a time or the past, the search need not hit.
    """
    if topics is not None:
        keys = {key.casefold() for key in topics}
        return [shelf for shelf in shelves if shelf.topic.key.casefold() in keys]
    ranked = sorted(shelves, key=lambda shelf: (claims[shelf], shelf.topic.key), reverse=True)
    return [shelf for shelf in ranked if all_of_them or claims[shelf] > (False, 0.0)]


@lru_cache(_TEXTS)
def _described(kind: TopicType, name: str) -> frozenset[str]:
    """Return the words that describe such a topic, in each language: a question may be in another than the topic's."""
    return frozenset().union(*(_words(_topic(kind, name, language).description) for language in get_args(Language)))


@lru_cache(_TEXTS)
def _words(text: str) -> frozenset[str]:
    """Return the words that a text is found by; cached, as each recall checks all topics."""
    return frozenset(query_tokens(text))


def resolve(
    keys: Iterable[str], allowed: Iterable[Shelf], where: Partition, *, invents: bool
) -> tuple[tuple[Shelf, ...], tuple[str, ...]]:
    """Return the shelves that these keys name, and the keys that name none.

    A task that does not exist yet is made only where a model may invent topics. Two tools that may be used have a topic
    together, `tool:a+b`, in whichever order they are named. The keys are `type:name`, as a model wrote them; `invents`
    says whether it may invent topics.
    """
    known = {shelf.topic.key.strip().casefold(): shelf for shelf in allowed}  # a name may end in a space
    found: dict[str, Shelf] = {}
    refused: list[str] = []
    for key in dict.fromkeys(key.strip() for key in keys):
        kind, _, name = key.partition(":")
        shelf = known.get(key.casefold()) or _pair(key, known, where)
        if shelf is None and invents and kind.strip() == "task" and name.strip() and "\x00" not in name:
            shelf = Shelf(partition=where, topic=Topic(type="task", target_name=name.strip()))
        if shelf is None:
            refused.append(key)
        else:
            found.setdefault(shelf.topic.key.casefold(), shelf)
    return tuple(found.values()), tuple(refused)


def _pair(key: str, known: Mapping[str, Shelf], where: Partition) -> Shelf | None:
    """Return the topic of two known tools together, if a key names one."""
    kind, _, names = key.partition(":")
    tools = [known.get(f"tool:{name.strip()}".casefold()) for name in names.split("+")]
    found = sorted({tool.topic.target_name for tool in tools if tool is not None})
    if kind.strip().casefold() != "tool" or not len(tools) == len(found) == 2:
        return None
    pair = tool_topic("+".join(found))
    return known.get(pair.key.casefold()) or Shelf(partition=where, topic=pair)


def topic_graph(
    centre: Topic, topics: Iterable[Topic], memories: Iterable[Memory], links: Iterable[Link]
) -> TopicGraph:
    """Return the graph of topics around the centre.

    Topics of one key are one node, wherever they live. Two topics are tied where a block or a link is common to them;
    the centre is tied to all. `topics` hold that of every memory; the centre may be one of them.
    """
    nodes = {topic.key: topic for topic in (*topics, centre)}
    topic_of = {memory.memory_id: memory.topic.key for memory in memories}
    counts = Counter(topic_of.values())
    topics_of_block: defaultdict[str, set[str]] = defaultdict(set)
    blocks: defaultdict[str, list[str]] = defaultdict(list)
    for memory in memories:
        for block_id in memory.block_ids:
            if memory.topic.key not in topics_of_block[block_id]:
                topics_of_block[block_id].add(memory.topic.key)
                blocks[memory.topic.key].append(block_id)
    shared: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for block_id, keys in topics_of_block.items():
        for pair in combinations(sorted(keys), 2):
            shared[pair].append(block_id)
    linked = Counter(
        _unordered(topic_of[link.source_id], topic_of[link.target_id])
        for link in links
        if link.source_id in topic_of and link.target_id in topic_of
    )
    others = sorted(key for key in nodes if key != centre.key)
    spokes = [(centre.key, key) for key in others]
    ties = sorted(pair for pair in shared.keys() | linked.keys() if centre.key not in pair and pair[0] != pair[1])
    bubbles = {
        key: TopicNode(topic=topic, memories=counts[key], block_ids=tuple(blocks[key])) for key, topic in nodes.items()
    }
    return TopicGraph(
        centre=bubbles[centre.key],
        topics=tuple(bubbles[key] for key in others),
        edges=tuple(
            TopicEdge(
                source=one,
                target=other,
                block_ids=tuple(shared[_unordered(one, other)]),
                links=linked[_unordered(one, other)],
            )
            for one, other in (*spokes, *ties)
        ),
    )


def _unordered(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
