"""The only module that knows every adapter: settings in, use cases out.

One `Wiring` lives as long as its execution environment. It keeps clients, settings and secrets, and nothing of any
conversation. Every client comes from PynamoDB's own botocore session: a second session, or boto3, would cost a fifth of
each cold start. What only one function needs is imported where that is wired: ingest has people waiting for its start.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.config import Config

from rejoinder import channels
from rejoinder.accounts import Accounts
from rejoinder.ingest import Ingest
from rejoinder.observe.powertools import PowertoolsObserver
from rejoinder.ports import Outside
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.secrets import Secrets
from rejoinder.settings import Function, Settings, followed
from rejoinder.stores.dynamodb.store import DynamoDBStore
from rejoinder.stores.dynamodb.table import Table, connect
from rejoinder.system import SystemClock, SystemIds
from rejoinder.wakeups.lanes import Lanes
from rejoinder.wakeups.scheduler import Schedules
from rejoinder.wakeups.sqs import Queue

if TYPE_CHECKING:
    from mypy_boto3_scheduler import EventBridgeSchedulerClient
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_ssm import SSMClient

    from rejoinder.sweep import Swept
    from rejoinder.waking import Waking

CONNECT_TIMEOUT_S = 1
READ_TIMEOUT_S = 3
"""The provider waits for our answer to its webhook: botocore's own 60 s would outlive the function."""

SWEEP_MARGIN_MS = 5_000
"""A sweep ends this long before its function does, so that it reports what it found."""


class Clients:
    """AWS clients from one botocore session, each made once, when it is first needed."""

    def __init__(self) -> None:
        self.dynamodb = connect(connect_timeout_s=CONNECT_TIMEOUT_S, read_timeout_s=READ_TIMEOUT_S)

    def _create(self, service: str, tries: int) -> Any:
        config = Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"total_max_attempts": tries, "mode": "standard"},
        )
        return self.dynamodb.session.create_client(service, config=config)

    @cached_property
    def _sqs(self) -> "SQSClient":
        client: SQSClient = self._create("sqs", tries=2)
        return client

    @cached_property
    def _scheduler(self) -> "EventBridgeSchedulerClient":
        client: EventBridgeSchedulerClient = self._create("scheduler", tries=1)  # `Schedules` tries again by itself
        return client

    @cached_property
    def _sns(self) -> "SNSClient":
        client: SNSClient = self._create("sns", tries=2)
        return client

    @cached_property
    def _ssm(self) -> "SSMClient":
        client: SSMClient = self._create("ssm", tries=2)
        return client

    @cached_property
    def _secretsmanager(self) -> "SecretsManagerClient":
        client: SecretsManagerClient = self._create("secretsmanager", tries=2)
        return client

    def warm(self, settings: Settings) -> None:
        """Make now what the first invocation needs: Lambda gives a whole processor to a start, and then a share."""
        assert self.dynamodb.client is not None
        self.sqs()
        if settings.wake_lane != "queue":
            self.scheduler()
        if settings.accounts.startswith("ssm:"):
            self.ssm()

    def sqs(self) -> "SQSClient":
        """The wake-up queue and its dead letters."""
        return self._sqs

    def scheduler(self) -> "EventBridgeSchedulerClient":
        """EventBridge Scheduler."""
        return self._scheduler

    def sns(self) -> "SNSClient":
        """The topic by which a bot calls a person."""
        return self._sns

    def ssm(self) -> "SSMClient":
        """The Parameter Store."""
        return self._ssm

    def secretsmanager(self) -> "SecretsManagerClient":
        """Secrets Manager."""
        return self._secretsmanager


class Wiring:
    """The adapters of one deployed function.

    Attributes:
        settings: checked.
        observer: for the handler's own use too.
    """

    def __init__(self, settings: Settings, function: Function, clients: Clients) -> None:
        self.settings = settings
        self.observer = PowertoolsObserver(settings.service_name, settings.log_level)
        self._clock = SystemClock()
        self._clients = clients
        self._clients.warm(settings)
        self._secrets = Secrets(self._clients, self._clock)
        self._store = DynamoDBStore(Table(settings.table_name, self._clients.dynamodb), settings.timing)
        # a bot that cannot be imported stops the generator at its start: messages stay pending until it is mended
        self._waking = self._generator() if function == "generate" else None

    def ingest(self) -> Ingest:
        """The use case behind the webhooks."""
        per_account = self.settings.per_account

        def own(ingest: Ingest, conversation_id: str) -> Ingest:
            timing = per_account.timing_of(conversation_id)
            return ingest if timing is ingest.timing else replace(ingest, timing=timing, store=self._timed(timing))

        return Ingest(
            self._store,
            self._lanes(self.settings.generator_arn),
            self._accounts,
            self._clock,
            self.observer,
            self.settings.timing,
            self.settings.policy,
            own,
        )

    def _timed(self, timing: Timing) -> DynamoDBStore:
        return replace(self._store, timing=timing)

    def waking(self, generator_arn: str) -> "Waking":
        """The use case behind the wake-ups.

        Args:
            generator_arn: the function's own, as its invocation names it.
        """
        assert self._waking is not None  # it is the generator's alone
        return self._waking(generator_arn)

    def sweep(self, remaining_ms: int) -> "Swept":
        """Sweep once, within what is left of the invocation."""
        from rejoinder.sweep import sweep  # noqa: PLC0415  # the sweep's alone

        stop_at_ms = self._clock.now_ms() + remaining_ms - SWEEP_MARGIN_MS
        lanes = self._lanes(self.settings.generator_arn)
        return run(
            sweep(self._store, lanes, self._clock, self.observer, self.settings.per_account.timing_of, stop_at_ms)
        )

    def _generator(self) -> "Callable[[str], Waking]":
        """Load the bot, and all else that does not depend on the invocation; gives `waking`."""
        from rejoinder.bots.function import FunctionBot, load  # noqa: PLC0415  # the generator's alone, as are these
        from rejoinder.calling import Topic  # noqa: PLC0415
        from rejoinder.effects import Effects  # noqa: PLC0415
        from rejoinder.media import Fetching  # noqa: PLC0415
        from rejoinder.newer import Look  # noqa: PLC0415
        from rejoinder.waking import Waking  # noqa: PLC0415

        settings = self.settings
        per_account = settings.per_account
        functions = {name: load(name) for name in per_account.bots}
        fetching = Fetching(self._accounts, self._clock, self.observer)
        notifier = Topic(self._clients.sns, settings.handoff_topic_arn)

        def waking(generator_arn: str) -> "Waking":
            lanes = self._lanes(generator_arn)

            def outside(conversation_id: str) -> Outside:
                timing = per_account.timing_of(conversation_id)
                store = self._timed(timing)
                effects = Effects(store, self._clock, SystemIds(), self.observer, timing)
                look = Look(store, self._clock, settings.policy.on_newer, timing.absorb_ms)
                return Outside(
                    store=store,
                    wake_ups=lanes,
                    channels=self._accounts,
                    bot=FunctionBot(
                        functions[per_account.bot_of(conversation_id)],
                        self._clock,
                        secret=self._secrets.read,
                        once=effects.once_in,
                        fetch=fetching.at,
                        watched=look.at,
                    ),
                    clock=self._clock,
                    ids=SystemIds(),
                    observer=self.observer,
                    timing=timing,
                    policy=settings.policy,
                    notifier=notifier,
                )

            return Waking(
                outside,
                self.observer,
                self._clock,
                lanes.bury_unreadable,
                settings.generation_ms,
                settings.send_budget_ms,
            )

        return waking

    @cached_property
    def _accounts(self) -> Accounts:
        return Accounts(self.settings.accounts, self._secrets, self._clock, channels.NAMES, channels.open_channel)

    def _lanes(self, generator_arn: str) -> Lanes:
        settings = self.settings
        sqs = self._clients.sqs()
        schedules = Schedules(
            self._clients.scheduler,
            settings.schedule_group,
            generator_arn,
            settings.schedule_role_arn,
            settings.dead_letter_queue_arn,
            self._clock,
            SystemIds(),
            time.sleep,
        )
        return Lanes(
            settings.wake_lane,
            Queue(sqs, settings.queue_url),
            Queue(sqs, settings.dead_letter_queue_url),
            schedules,
            self._clock,
        )


def deployed(function: Function, environment: Mapping[str, str]) -> Wiring:
    """Wire a deployed function from its environment.

    Raises:
        SettingsError: with every fault, so that the function stops before it does half of anything.
        Permanent: the generator's bot cannot be loaded.
    """
    clients = Clients()
    environment = followed(environment, Secrets(clients, SystemClock()).read)
    wiring = Wiring(Settings.from_environment(environment, function), function, clients)
    for warning in wiring.settings.warnings():
        wiring.observer.happened("warned", reason=warning)
    return wiring
