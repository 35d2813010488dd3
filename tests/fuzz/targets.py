"""What is fuzzed: everything that reads what strangers write. Each target takes any bytes, and raises for our faults.

A channel's input is a body, and after it, each behind a byte that no UTF-8 has, the rest of the request: method, query,
then header lines. What stands alone is a body that comes by POST, with the provider's own headers. Every input is tried
twice, once with a right proof and once as a stranger sends it, and then through the whole use case, which never raises.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from contract.channel_subjects import SUBJECTS, opened
from contract.channel_suite import EVENTS, NOW_MS, Subject
from contract.sms_subjects import FormSubject
from fakes import ManualClock
from rejoinder import gateway, notifications
from rejoinder.ingest import Ingest
from rejoinder.local.deployment import TheseAccounts
from rejoinder.observe.memory import MemoryObserver
from rejoinder.ports import (
    ByPerson,
    Channel,
    Edited,
    Event,
    Inbound,
    Malformed,
    PauseAsked,
    Reported,
    Request,
    ResumeAsked,
    Unverified,
)
from rejoinder.protocol.identity import ConversationId
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.memory import MemoryStore
from rejoinder.wakeups.codec import UnreadableWakeUpError, decode, encode
from rejoinder.wakeups.memory import MemoryWakeUps

SEPARATOR = b"\xff"
"""No UTF-8 holds it, so no seed does."""

STATUSES = frozenset({200, 400, 401, 403, 404, 405, 413, 415})
"""What a webhook is answered (`architecture.md`); 503 is for a store or a secret that cannot be reached."""


LONGEST_REASON = 1_000
"""Characters of a refusal that a log line bears."""


@dataclass(frozen=True)
class Target:
    """One thing to fuzz.

    Attributes:
        check: raises whatever is not declared.
        seeds: real inputs, to begin from.
    """

    name: str
    check: Callable[[bytes], None]
    seeds: tuple[bytes, ...]


def targets() -> dict[str, Target]:
    """Every target by its name: each channel, and what stands before them."""
    found = [channel_target(subject) for subject in SUBJECTS.values()]
    found += [
        Target("gateway", through_the_gateway, tuple(gateway_seeds())),
        Target("notifications", through_a_topic, tuple(stored("whatsapp_aws", "sms_aws"))),
        Target("wakeups", woken, tuple(wake_up_seeds())),
    ]
    return {target.name: target for target in found}


def stored(*folders: str) -> Iterator[bytes]:
    """The stored events of some folders, as one line of JSON each."""
    for folder in folders:
        for path in sorted((EVENTS / folder).glob("*.json")):
            yield json.dumps(json.loads(path.read_text()), separators=(",", ":")).encode()


# --- channels ---


def channel_target(subject: Subject) -> Target:
    """A channel's verify, handshake and parse, and the use case around them."""
    bodies = [subject.event_request(case).body for case in subject.event_names()]
    checks = [SEPARATOR.join([b"", b"GET", b"hub.mode=subscribe&hub.verify_token=syn-verify&hub.challenge=1"])]
    checks += [SEPARATOR.join([b'{"type": "url_verification", "challenge": "c"}', b"POST"])]
    checks += [SEPARATOR.join([bodies[0], b"POST", b"a=1&b=%C3%A9", b"content-type: text/plain; charset=utf-8"])]
    return Target(subject.name, partial(through_a_channel, subject), (*bodies, *checks))


def through_a_channel(subject: Subject, content: bytes) -> None:
    """Read a request with a right proof, then as the input has it."""
    proven = subject.request(content.partition(SEPARATOR)[0])
    if not isinstance(subject, FormSubject):  # whose proof is of the query, too
        proven = replace(proven, query=written(content).query)
    for request in (proven, as_written(proven, written(content))):
        channel = opened(subject)
        reads_or_refuses(channel, subject.name, request)
        taken(subject.name, request, {f"{subject.name}/{request.via}": channel})


def written(content: bytes) -> Request:
    """Read an input as the request that it describes."""
    body, method, query, *lines = [*content.split(SEPARATOR), b"", b""][: max(3, content.count(SEPARATOR) + 1)]
    text = partial(bytes.decode, encoding="utf-8", errors="surrogateescape")
    headers = dict(text(line).partition(": ")[::2] for line in lines)
    return Request(text(method).upper() or "POST", "/", headers, body, query=text(query))


def as_written(proven: Request, stranger: Request) -> Request:
    """The same request with the stranger's method, query and headers."""
    return replace(proven, method=stranger.method, query=stranger.query, headers={**proven.headers, **stranger.headers})


def reads_or_refuses(channel: Channel, name: str, request: Request) -> None:
    """Only the declared exceptions leave, and only well-formed events come back."""
    for refusing in (partial(channel.verify, request, NOW_MS), partial(channel.handshake, request)):
        try:
            refusing()
        except (Unverified, Malformed):
            continue
    try:
        events = channel.parse(request, NOW_MS)
    except Malformed:
        return
    for event in events:
        well_formed(event, name)


def well_formed(event: Event, name: str) -> None:
    """Hold an event against what `ports.webhooks` says of it."""
    assert isinstance(event, Event)
    if isinstance(event, Edited):
        assert type(event.edited_at_ms) is int
        event = event.now
    if isinstance(event, Inbound | Reported | ByPerson | PauseAsked | ResumeAsked):
        decoded = ConversationId.parse(event.conversation_id)
        assert decoded.channel == name
        assert str(decoded) == event.conversation_id
    if isinstance(event, Inbound):
        assert event.provider_id
        assert event.author
        assert event.address
        assert type(event.sent_at_ms) in {int, type(None)}
        assert type(event.sequence) is int


def taken(name: str, request: Request, accounts: Mapping[str, Channel]) -> None:
    """Let the use case answer: it raises for nothing that comes from outside, and what it answers can be written."""
    timing = Timing()
    ingest = Ingest(
        MemoryStore(timing), MemoryWakeUps(), TheseAccounts(accounts), ManualClock(NOW_MS), MemoryObserver(), timing
    )
    response = run(ingest(name, request))
    assert response.status in STATUSES
    json.dumps(gateway.write(response, method=request.method))


# --- what stands before the channels ---


def gateway_seeds() -> Iterator[bytes]:
    """Events of HTTP APIs and REST APIs."""
    yield from stored("webhook", "twilio")
    headers = {"multiValueHeaders": {"X-A": ["1", "2"]}, "multiValueQueryStringParameters": {"a": ["1", "2"]}}
    context = {"path": "/prod/webhooks/webhook/default", "domainName": "example.org"}
    yield json.dumps({"httpMethod": "POST", "requestContext": context, "body": "{}", **headers}).encode()


def loaded(content: bytes) -> Any:
    """An event as Lambda makes it of JSON; None, which is one too, where it is no JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def through_the_gateway(content: bytes) -> None:
    """Read an event, and let the use case answer its request."""
    try:
        name, request = gateway.read(loaded(content))
    except Malformed:
        return
    assert isinstance(name, str)
    taken(name, request, {"webhook/default": opened(SUBJECTS["webhook"])})


def through_a_topic(content: bytes) -> None:
    """Read a notification, and let the use case answer each request."""
    event = loaded(content)
    if not notifications.are(event):
        return
    try:
        read = notifications.read(event)
    except Malformed:
        return
    accounts = {f"{name}/default": opened(SUBJECTS[name]) for name in ("whatsapp_aws", "sms_aws")}
    for name, request in read:
        for topic_arn in (request.topic_arn, SUBJECTS["sms_aws"].fields["topic_arn"]):
            taken(name, replace(request, topic_arn=topic_arn), accounts)


def wake_up_seeds() -> Iterator[bytes]:
    """The bodies that the lanes bring, and the events that they come in."""
    for event in map(json.loads, stored("wakeup")):
        yield from (record["body"].encode() for record in event.get("Records", []))
        yield json.dumps(event).encode()


def woken(content: bytes) -> None:
    """Read a wake-up as the queue brings it, and as Scheduler does; what is read is written the same again."""
    for body in (content.decode("utf-8", "surrogateescape"), loaded(content)):
        try:
            wake_up = decode(body)
        except UnreadableWakeUpError as refusal:
            if len(str(refusal)) > LONGEST_REASON:
                raise
            continue
        assert decode(encode(wake_up)) == wake_up
        assert str(ConversationId.parse(wake_up.conversation_id)) == wake_up.conversation_id  # or no key of the table
