"""Where each of the 100 cases stands: played as written, played by our policy, or decided by a test of its own."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """Played, and asserted as our rule where it differs from what the record expects.

    Attributes:
        reason: the difference, in one line.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class OwnTest:
    """Played, and what decides it is a test of its own against real parts.

    Attributes:
        test: module and function, in this folder.
    """

    test: str


@dataclass(frozen=True, slots=True)
class Played:
    """Passed by the runner, as it is written."""


Status = Played | Policy | OwnTest

POLICIES = {
    "FC-130": Policy("the reply stays committed and is offered again with pauses; its messages are not pending again"),
    "FC-141": Policy("schedules alone are allowed for a short debounce: up to 60 s late, and a warning says so"),
    "FC-143": Policy("a schedule is only ever created, under a fresh name; nobody updates one, so none can be missing"),
    "FC-149": Policy("a delay over 900 s becomes a schedule in every lane; it is not cut to 900 s and armed again"),
    "FC-159": Policy("a lease may be shorter than the function's time: its holder renews it, and a crash shows sooner"),
}

OWN_TESTS = {
    "FC-038": OwnTest("test_store.py::test_floats_survive_the_table"),
    "FC-041": OwnTest("test_store.py::test_every_expression_names_its_attributes_by_placeholders"),
    "FC-140": OwnTest("test_generate.py::test_many_turns_in_one_process_answer_like_fresh_processes"),
    "FC-157": OwnTest("test_generate.py::test_the_ingest_function_leaves_no_thread"),
}


def status_of(case_id: str) -> Status:
    """Say where a case stands: exactly one of the three."""
    return POLICIES.get(case_id) or OWN_TESTS.get(case_id) or Played()
