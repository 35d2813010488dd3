"""Start ministack, a local emulator of AWS, on loopback, and stop it again.

As a command it lends one to another command, whose environment then has its address:
`python -m e2e.emulator -- pytest -m e2e`.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import urllib3

ROOT = Path(__file__).resolve().parents[2]

MINISTACK = ROOT / ".ministack-venv" / "bin" / "ministack"
"""In an environment of its own, since it pins its own botocore; `make e2e-tools` makes it."""

ENDPOINT_VARIABLE = "DYNAMODB_ENDPOINT"
"""Names a running emulator: the suites that can run over one look here."""

REGION = "eu-central-1"

START_S = 30.0
STOP_S = 10.0

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
"""The emulator takes any; real ones of the caller must never reach it."""


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator.

    Attributes:
        url: of its one port, for every service.
        process: the emulator; the processes of deployed functions are its children.
        log: what it says, and what the deployed functions write to stderr.
    """

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        """Its process id, which is its process group's too."""
        return self.process.pid

    def environment(self) -> dict[str, str]:
        """The environment in which an SDK or the SAM CLI talks to this emulator and to nothing else."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return kept | CREDENTIALS | {"AWS_ENDPOINT_URL": self.url, "AWS_EC2_METADATA_DISABLED": "true"}


def free_port(host: str = "127.0.0.1") -> int:
    """Find a port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def answers(url: str) -> bool:
    """Whether an emulator is ready at the address."""
    try:
        response = urllib3.request("GET", f"{url}/_ministack/health", timeout=2.0, retries=False)
    except urllib3.exceptions.HTTPError:
        return False
    return response.status == 200


def spawn(port: int, folder: Path) -> Emulator:
    """Start an emulator that outlives this call, and wait until it answers.

    Args:
        port: free, on loopback.
        folder: where its log and its temporary files go; must exist.

    Raises:
        RuntimeError: it is not installed, or did not answer within `START_S`; the end of its log is in the message.
    """
    if not MINISTACK.exists():
        raise RuntimeError(f"the emulator is not installed ({MINISTACK.relative_to(ROOT)}): run `make e2e-tools`")
    log = folder / "emulator.log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))} | {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "AUTH": "true",  # the deployed functions may do what their roles in the template allow, and no more
        "LAMBDA_EXECUTOR": "local",
        "MINISTACK_REGION": REGION,
        "S3_DATA_DIR": str(folder / "s3"),
        "STATE_DIR": str(folder / "state"),
        "TMPDIR": str(folder),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [MINISTACK],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    emulator = Emulator(f"http://127.0.0.1:{port}", process, log)
    give_up = time.monotonic() + START_S
    while not answers(emulator.url):
        if process.poll() is not None or time.monotonic() > give_up:
            stop(emulator)
            raise RuntimeError(f"the emulator did not start; its log ends with:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)
    return emulator


def stop(emulator: Emulator) -> None:
    """End the emulator and the functions it runs: everything in the process group that `spawn` made."""
    for ending in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(emulator.pid, ending)
        with contextlib.suppress(subprocess.TimeoutExpired):
            emulator.process.wait(STOP_S)


@contextlib.contextmanager
def running() -> Iterator[Emulator]:
    """Lend an emulator of one's own, with nothing in it."""
    with tempfile.TemporaryDirectory(prefix="rejoinder-emulator-", ignore_cleanup_errors=True) as folder:
        emulator = spawn(free_port(), Path(folder))
        try:
            yield emulator
        finally:
            stop(emulator)


def lend(command: list[str], environment: Mapping[str, str]) -> int:
    """Run a command with an emulator beside it, and give its exit status."""
    with running() as emulator:
        print(f"emulator: {emulator.url}", flush=True)
        return subprocess.run(command, env={**environment, ENDPOINT_VARIABLE: emulator.url}, check=False).returncode


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] != ["--"] or len(arguments) < 2:
        sys.exit("usage: python -m e2e.emulator -- COMMAND [ARGUMENT...]")
    sys.exit(lend(arguments[1:], os.environ))
