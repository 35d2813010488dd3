"""What a start imports, by `benchmarks/cold_start.py`, which measures how long it takes."""

import importlib.util
import subprocess
import sys
from types import ModuleType

import pytest

from rejoinder.channels import NAMES
from stack import ROOT

SHARED = {"whatsapp_aws": {"whatsapp"}}
"""Channels that are read by another one's modules."""

OF_THE_GENERATOR = (
    "attempt",
    "answering",
    "bots",
    "calling",
    "deliver",
    "effects",
    "generate",
    "media",
    "newer",
    "waking",
)


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cold_start", ROOT / "benchmarks" / "cold_start.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imported(benchmark: ModuleType, code: str) -> set[str]:
    """The modules that a fresh interpreter has after it."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sorted(sys.modules))"],
        env=benchmark.ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("channel", NAMES)
def test_ingest_imports_one_channel_and_nothing_of_the_generator(benchmark: ModuleType, channel: str) -> None:
    """A provider waits for its start, and switches off webhooks that are slow."""
    modules = imported(benchmark, benchmark.start_with(channel))
    others = set(NAMES) - {channel} - SHARED.get(channel, set())
    assert f"rejoinder.channels.{channel}" in modules
    assert not modules & {f"rejoinder.channels.{other}" for other in others}
    assert not {name for name in modules if name.split(".")[:2] in [["rejoinder", part] for part in OF_THE_GENERATOR]}
    assert "rejoinder.channels.fetching" not in modules
    assert not modules & {"asyncio", "boto3", "aws_xray_sdk"}


def test_the_other_functions_start_as_the_benchmark_starts_them(benchmark: ModuleType) -> None:
    """The generator has all of its use case before the first wake-up comes."""
    modules = imported(benchmark, benchmark.start_of("generate"))
    assert {f"rejoinder.{part}" for part in OF_THE_GENERATOR} <= modules
    assert "rejoinder.sweep" not in modules
    assert "rejoinder.stores.dynamodb.store" in imported(benchmark, benchmark.start_of("sweep"))
