"""One resolver for references to secrets: `ssm:NAME`, `secretsmanager:NAME`, and at the desk `env:NAME`.

A secret is read when it is first needed and kept for a while; one that is not there is asked for again much sooner. Its
value is never logged and stands in no error.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from rejoinder.ports import Clock, Permanent, Transient

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_ssm import SSMClient

MAX_AGE_MS = 300_000
"""A rotated secret is used after this long at the latest; a failed proof asks sooner (`Accounts.refreshed`)."""

MAX_ABSENT_AGE_MS = 15_000
"""A secret that was just created works after this long; until then strangers' guesses cost no calls."""

MAX_KEPT = 1_000
"""Names come from URLs: the memory of them is bounded."""

ABSENT = frozenset({"ParameterNotFound", "ParameterVersionNotFound", "ResourceNotFoundException"})
OURS = frozenset({"AccessDeniedException", "DecryptionFailure", "InvalidKeyId", "ValidationException"})
"""Answers that say the deployment is wrong, and not the service busy."""

_REFERENCE = re.compile(r"(?P<scheme>[a-z]+):(?P<name>.+)")


class SecretClients(Protocol):
    """Makes the clients when they are first needed: most invocations need neither."""

    def ssm(self) -> "SSMClient":
        """The Parameter Store."""

    def secretsmanager(self) -> "SecretsManagerClient":
        """Secrets Manager."""


@dataclass(frozen=True, slots=True)
class _Kept:
    value: str | None
    read_at_ms: int

    def fresh_at(self, now_ms: int) -> bool:
        return now_ms - self.read_at_ms < (MAX_ABSENT_AGE_MS if self.value is None else MAX_AGE_MS)


@dataclass(slots=True)
class Secrets:
    """Reads secrets by reference.

    Attributes:
        clients: of the services.
        clock: time.
        environment: for `env:`; None where that is not allowed, as in a deployment, whose environment anybody reads
            who may look at the function.
    """

    clients: SecretClients
    clock: Clock
    environment: Mapping[str, str] | None = None
    _kept: dict[str, _Kept] = field(default_factory=dict)

    def read(self, reference: str) -> str:
        """Read a secret, from memory where it is fresh; a stale one serves while its service cannot be asked.

        Raises:
            Permanent: there is none, or the reference is none of ours.
            Transient: it cannot be read just now.
        """
        now_ms = self.clock.now_ms()
        kept = self._kept.get(reference)
        if kept is None or not kept.fresh_at(now_ms):
            try:
                return self.refresh(reference)
            except Transient:
                if kept is None or kept.value is None:
                    raise
        if kept.value is None:
            raise Permanent(f"{reference}: there is no such secret")
        return kept.value

    def refresh(self, reference: str) -> str:
        """Read a secret anew.

        Raises:
            Permanent: there is none, or the reference is none of ours.
            Transient: it cannot be read just now.
        """
        value = self._fetch(reference)
        if len(self._kept) >= MAX_KEPT and reference not in self._kept:
            self._kept.clear()
        self._kept[reference] = _Kept(value, self.clock.now_ms())
        if value is None:
            raise Permanent(f"{reference}: there is no such secret")
        return value

    def _fetch(self, reference: str) -> str | None:
        match = _REFERENCE.fullmatch(reference)
        scheme, name = (match["scheme"], match["name"]) if match else ("", "")
        if scheme == "env" and self.environment is not None:
            return self.environment.get(name)
        try:
            if scheme == "ssm":
                return self.clients.ssm().get_parameter(Name=name, WithDecryption=True)["Parameter"].get("Value")
            if scheme == "secretsmanager":
                return self.clients.secretsmanager().get_secret_value(SecretId=name).get("SecretString")
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in ABSENT:
                return None
            raise Transient(f"{reference}: {error}", ours=code in OURS) from error
        except BotoCoreError as error:
            raise Transient(f"{reference}: {error}") from error
        allowed = "ssm:NAME, secretsmanager:NAME" + (" or env:NAME" if self.environment is not None else "")
        raise Permanent(f"secret reference {reference!r}: expected {allowed}")
