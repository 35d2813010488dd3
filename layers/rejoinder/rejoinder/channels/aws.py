"""AWS's messaging services: what a topic brings is proven, and each call's failure is translated.

Calls are made one at a time, by the function's own role. Nothing is repeated here: the outbox does that. Only numbers
and codes of what goes wrong are told.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from rejoinder.channels import reading
from rejoinder.ports import Fault, Permanent, Request, Transient, UnknownOutcome, Unverified

Action = Literal["later", "ours", "final"]

COMMON: dict[str, Action] = {
    "AccessDeniedException": "ours",
    "ExpiredTokenException": "ours",
    "IncompleteSignature": "ours",
    "InvalidSignatureException": "ours",
    "MissingAuthenticationToken": "ours",
    "OptInRequired": "ours",
    "RequestExpired": "ours",
    "ThrottlingException": "later",
    "UnrecognizedClientException": "ours",
    "ValidationException": "final",
}
"""What any service may answer, some of it with a status that says little (API References, "Common Errors")."""

SENDING_S = (2, 10)
"""Seconds until a connection stands, and of silence."""


@dataclass(frozen=True, slots=True)
class Service:
    """One service in one region.

    Attributes:
        name: for reasons.
        client: botocore's name of it.
        endpoint_url: empty for the usual one.
        errors: what its own errors ask for, by code, or by `code/reason` where it gives one.
        hint: what to look at where it is our own fault.
        told_later: it reports by itself, or can be asked, what it has sent.
    """

    name: str
    client: str
    region: str
    endpoint_url: str
    hint: str
    errors: Mapping[str, Action] = field(hash=False)
    told_later: bool = False

    def call(self, operation: str, limits_s: tuple[float, float] = SENDING_S, **arguments: Any) -> Mapping[str, Any]:
        """Make one call.

        Raises:
            Transient: certainly not done.
            Permanent: refused for good.
            UnknownOutcome: may have been done.
        """
        from botocore import exceptions  # noqa: PLC0415  # ingest never sends

        try:
            client = _client(self.client, self.region, self.endpoint_url, limits_s)
            answer: Mapping[str, Any] = getattr(client, operation)(**arguments)
        except exceptions.ClientError as refusal:
            raise self._fault(refusal.response) from None
        except (exceptions.ConnectTimeoutError, exceptions.EndpointConnectionError) as error:
            raise Transient(f"{self.name}: {type(error).__name__}, nothing was sent") from None
        except (exceptions.NoCredentialsError, exceptions.ParamValidationError) as error:
            raise Transient(f"{self.name}: {type(error).__name__}", ours=True) from None
        except Exception as error:  # noqa: BLE001  # cut off, or an answer that its parser cannot read
            raise UnknownOutcome(f"{self.name}: {type(error).__name__}", told_later=self.told_later) from None
        return answer

    def _fault(self, response: Mapping[str, Any]) -> Fault:
        """Translate an answer that is no success: by its code, else by its status."""
        code = response.get("Error", {}).get("Code", "")
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        cause = response.get("Reason", "")
        reason = f"{self.name} answered {status} {code} {cause}".rstrip()
        known = {**COMMON, **self.errors}
        match known.get(f"{code}/{cause}") or known.get(code) or _by_status(status):
            case "later":
                return Transient(reason)
            case "ours":
                return Transient(f"{reason}: check {self.hint}", ours=True)
            case "final":
                return Permanent(reason)
            case _:
                return UnknownOutcome(reason, told_later=self.told_later)


def verify_topic(request: Request, topic_arn: str) -> None:
    """Check that the topic's subscription brought it; a request over HTTP never has a topic.

    Raises:
        Unverified: from elsewhere.
    """
    if not request.topic_arn:
        raise Unverified("not from a topic: this channel takes no webhooks")
    if not reading.same(request.topic_arn, topic_arn):
        raise Unverified("from another topic than topic_arn")


def _by_status(status: int) -> Action | None:
    match status:
        case 429:
            return "later"
        case 401 | 403:
            return "ours"
        case _ if 300 <= status < 400:
            return "ours"
        case _ if 400 <= status < 500:
            return "final"
        case _:
            return None


@lru_cache(maxsize=16)
def _client(service: str, region: str, endpoint_url: str, limits_s: tuple[float, float]) -> Any:
    """Make a client, when the first reply is sent."""
    from botocore.config import Config  # noqa: PLC0415  # ingest never sends
    from botocore.session import get_session  # noqa: PLC0415

    config = Config(
        connect_timeout=limits_s[0],
        read_timeout=limits_s[1],
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
    session: Any = get_session()  # its stubs know no service
    return session.create_client(service, region_name=region, endpoint_url=endpoint_url or None, config=config)
