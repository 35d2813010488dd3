"""Run a built function on one event: in a container by `sam local`, or bare by the emulator that SAM CLI ships."""

import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
import yaml

from e2e.deployment import ARCHITECTURE, BUILD, SAM
from e2e.emulator import CREDENTIALS, ROOT, free_port
from e2e.relay import relay

FUNCTIONS = {"ingest": "IngestFunction", "generate": "GenerateFunction"}
LAYERS = ("BotLayer", "RejoinderLayer", "DependenciesLayer")
IMAGE = f"lambda/python:3.13-{ARCHITECTURE}"
"""As SAM CLI names it, after the registry."""

TIMEOUT_S = 120

RIE_NAMES = {"x86_64": "aws-lambda-rie-x86_64", "arm64": "aws-lambda-rie-arm64"}
RIE_START_S = 10.0


class InvocationFailedError(Exception):
    """The function could not be run, or raised; the message has what was printed."""


def docker(*arguments: str) -> str | None:
    """Ask the Docker engine by its client; None where there is no client, no engine, or no such thing."""
    try:
        done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def engine_runs() -> bool:
    """Whether a Docker engine answers."""
    return docker("version", "--format", "{{.Server.Version}}") is not None


def image_is_present() -> bool:
    """Whether the base image is there already; else SAM CLI pulls it from its public registry."""
    return bool(docker("image", "ls", "--quiet", "--filter", f"reference=*/{IMAGE}"))


@contextlib.contextmanager
def within_reach(*urls: str) -> Iterator[tuple[str, ...]]:
    """Give the URLs by which a container reaches what listens on loopback at `urls`.

    On Linux the engine's bridge is an address of this machine, and a relay listens there; Docker Desktop brings
    `host.docker.internal` to the loopback of its host by itself.
    """
    if platform.system() != "Linux":
        yield tuple(url.replace("127.0.0.1", "host.docker.internal") for url in urls)
        return
    bridge = docker("network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}")
    if not bridge:
        raise InvocationFailedError("the Docker engine has no network `bridge`, by which a container could reach AWS")
    with contextlib.ExitStack() as relays:
        yield tuple(relays.enter_context(relay(bridge, url)) for url in urls)


def template_with(variables: Mapping[str, str]) -> Path:
    """Write the built template with more environment variables for each function; SAM CLI takes only declared ones."""
    template = yaml.safe_load((BUILD / "template.yaml").read_text())
    template["Globals"]["Function"]["Environment"]["Variables"] |= variables
    for resource in template["Resources"].values():  # what a function declares itself goes over what all have
        own = resource.get("Properties", {}).get("Environment", {}).get("Variables", {})
        own |= {name: variables[name] for name in own.keys() & variables.keys()}
    written = BUILD / "template.local.yaml"
    written.write_text(yaml.safe_dump(template, sort_keys=False))
    return written


def quiet_environment() -> dict[str, str]:
    """The environment of SAM CLI where it must not look for an account: each such look would take seconds."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return (
        kept
        | CREDENTIALS
        | {
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL_STS": "http://127.0.0.1:9",
            "AWS_MAX_ATTEMPTS": "1",
            "SAM_CLI_TELEMETRY": "0",
        }
    )


def sam_local(subcommand: str, variables: Mapping[str, str], *arguments: str) -> list[str]:
    """The command line of `sam local`."""
    pull = ["--skip-pull-image"] if image_is_present() else []
    overrides = ["--parameter-overrides", f"Architecture={ARCHITECTURE}"]
    return [str(SAM), "local", subcommand, *arguments, "--template", str(template_with(variables)), *overrides, *pull]


def invoke_in_container(function: str, event: Mapping[str, Any], variables: Mapping[str, str]) -> Any:
    """Run a function once in a container; gives its answer.

    Raises:
        InvocationFailedError: it raised, or no container could be run.
    """
    command = sam_local("invoke", variables, FUNCTIONS[function], "--event", "-")
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=quiet_environment(),
        input=json.dumps(event),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    print(done.stderr, file=sys.stderr)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise InvocationFailedError(f"sam local invoke ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return checked(lines[-1])


def checked(payload: str) -> Any:
    """Read a function's answer.

    Raises:
        InvocationFailedError: it is the error that the function raised.
    """
    answer = json.loads(payload)
    if isinstance(answer, dict) and "errorType" in answer:
        raise InvocationFailedError(payload)
    return answer


@dataclass(frozen=True, slots=True)
class Bare:
    """A function under the runtime interface emulator.

    Attributes:
        url: takes events.
    """

    url: str

    def invoke(self, event: Mapping[str, Any]) -> Any:
        """Run the function once; gives its answer.

        Raises:
            InvocationFailedError: it raised.
        """
        body = json.dumps(event).encode()
        answer = urllib3.request("POST", self.url, body=body, timeout=TIMEOUT_S, retries=False)
        return checked(answer.data.decode())


@contextlib.contextmanager
def bare(function: str, variables: Mapping[str, str]) -> Iterator[Bare]:
    """Keep a built function ready without a container: the real runtime client, layers and handler.

    Raises:
        InvocationFailedError: it did not start.
    """
    python = SAM.with_name("python")
    rie = next(SAM.parents[1].glob(f"lib/python*/site-packages/samcli/local/rapid/{RIE_NAMES[ARCHITECTURE]}"))
    rie.chmod(0o755)
    folder = BUILD / FUNCTIONS[function]
    address, api = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    environment = quiet_environment() | {
        "PYTHONPATH": os.pathsep.join(str(path) for path in (folder, *(BUILD / layer / "python" for layer in LAYERS))),
        "AWS_LAMBDA_FUNCTION_NAME": FUNCTIONS[function],
        "AWS_LAMBDA_FUNCTION_TIMEOUT": str(TIMEOUT_S),
        **variables,
    }
    command: list[str | Path] = [rie, "--log-level", "error", "--runtime-interface-emulator-address", address]
    command += ["--runtime-api-address", api, python, "-m", "awslambdaric", "app.handler"]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=sys.stderr, stdin=subprocess.DEVNULL)
    try:
        give_up = time.monotonic() + RIE_START_S
        while process.poll() is None and time.monotonic() < give_up:
            with contextlib.suppress(urllib3.exceptions.HTTPError):
                urllib3.request("GET", f"http://{address}/", timeout=1.0, retries=False)
                break
            time.sleep(0.05)
        else:
            raise InvocationFailedError("the runtime interface emulator did not start")
        yield Bare(f"http://{address}/2015-03-31/functions/function/invocations")
    finally:
        process.terminate()
        process.wait(10)
