"""Books appointments in a calendar of yours, each one once, however often a turn has to be generated.

A message that comes while the model is at work outdates its reply, and the turn is generated again. The booking that
was made meanwhile is not made again: it is an effect (`docs/effects.md`). Where a crash leaves open whether it was
made, the calendar is asked.

    make dev ARGS="--bot appointments:reply --bot-path examples"

needs AWS credentials for Amazon Bedrock, and a calendar at `CALENDAR_URL`. Deployed, the generator must reach the
calendar, and its role needs `bedrock:InvokeModelWithResponseStream` (the parameter `BotPolicyArn`).
"""

import json
from typing import Any

from rejoinder import Turn, UnknownOutcome, http
from rejoinder.bots import bedrock
from rejoinder.bots.tools import tool

MODEL = "amazon.nova-lite-v1:0"
CALENDAR_URL = "http://127.0.0.1:8800"

SYSTEM = """You book appointments at a physiotherapist's, for one hour each. Look up the free hours of the day they
want, offer at most three, and book only when they have chosen one. Say in one sentence what was booked."""


class TakenError(Exception):
    """The hour was taken meanwhile."""


def asked(path: str, content: dict[str, Any], headers: dict[str, str] | None = None) -> http.Answer:
    """Ask the calendar."""
    body = json.dumps(content).encode()
    return http.post(f"{CALENDAR_URL}{path}", body, {"content-type": "application/json", **(headers or {})})


@tool
def free_hours(day: str) -> list[int]:
    """List the hours of a day at which an appointment may begin.

    Args:
        day: as YYYY-MM-DD.
    """
    answer = asked("/free", {"day": day})
    if answer.status != 200:
        raise LookupError(f"the calendar does not know (status {answer.status})")
    hours: list[int] = json.loads(answer.body)["hours"]
    return hours


def reference(turn: Turn, day: str, hour: int) -> str:
    """Name a booking for the calendar: the same name in every attempt at this turn."""
    return turn.idempotency_key("book", {"day": day, "hour": hour})


def booked(day: str, hour: int, turn: Turn) -> str | None:
    """Ask the calendar whether it was booked; None: it was not.

    Raises:
        UnknownOutcome: the calendar does not say.
    """
    answer = asked("/bookings/find", {"reference": reference(turn, day, hour)})
    match answer.status:
        case 200:
            return f"booked for {day} at {hour}:00"
        case 404:
            return None
        case status:
            raise UnknownOutcome(f"the calendar answered {status}")


@tool(effect=True, check=booked, refused=(TakenError,))
def book(day: str, hour: int, turn: Turn) -> str:
    """Book an appointment.

    Args:
        day: as YYYY-MM-DD.
        hour: at which it begins, 8 to 17.
        turn: given by Rejoinder.
    """
    name = reference(turn, day, hour)
    answer = asked("/bookings", {"day": day, "hour": hour, "reference": name}, {"idempotency-key": name})
    match answer.status:
        case 200 | 201:
            return f"booked for {day} at {hour}:00"
        case 409:
            raise TakenError(f"{day} at {hour}:00 is taken; offer another hour")
        case status:
            raise UnknownOutcome(f"the calendar answered {status}")


reply = bedrock.bot(MODEL, system=SYSTEM, tools=[free_hours, book], max_tokens=400)
