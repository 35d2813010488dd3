"""What the programs are drawn from that go through both stores: which calls, how often, with what."""

from typing import Any

from hypothesis import strategies as st

from rejoinder.protocol.timing import Timing

ANA = "webhook:shop:ana"
TIMING = Timing(max_pending=3, max_answered_ids=3)
"""Bounds so small that a short program meets them."""

NAMES = [f"m{number}" for number in range(9)]
"""Few enough that redeliveries come up, of pending messages and of long answered ones."""

EFFECTS = ("01#a", "01#b", "02#a")
TEXTS = st.text(st.characters(codec="utf-8"), max_size=3)
CONSENTS = st.sampled_from(["", "", "", "withdrawn", "given", "implied"])
WHICH = st.sampled_from([0, 0, 0, 0, 0, 1, 2])
"""Whose turn it is among those who ever held the lease: mostly the newest's, sometimes a zombie's."""

BOTH_LOOKS = st.sampled_from(["claim", "claim", "resume"])
LIKELY = st.sampled_from([True, True, True, False])
WEIGHTED: list[tuple[int, str, list[st.SearchStrategy[Any]]]] = [
    # mostly forwards, a little backwards: the clocks of processes differ
    (1, "time_passes", [st.sampled_from([1, 99, TIMING.debounce_ms, TIMING.lease_ms - 1, -1, -250, -3_000])]),
    (5, "record", [st.sampled_from(NAMES), TEXTS, CONSENTS]),
    (2, "amend", [st.integers(0, 2), LIKELY, TEXTS, st.sampled_from([0, 1, 5])]),
    (1, "overflow", [CONSENTS, st.sampled_from([0, 0, 7, -300])]),
    (5, "take", [BOTH_LOOKS, LIKELY]),
    (1, "take_again", [WHICH, BOTH_LOOKS, LIKELY]),
    (
        5,
        "commit",
        [
            WHICH,
            st.sampled_from(["commit", "commit", "commit_partial"]),
            st.booleans(),
            st.sampled_from([None, None, 500, 120_000]),
            st.lists(TEXTS, max_size=3).map(tuple),
        ],
    ),
    (2, "progress", [WHICH, st.integers(0, 3)]),
    (2, "finish", [WHICH]),
    (1, "release_superseded", [WHICH]),
    (
        4,
        "hold_or_let_go",
        [
            WHICH,
            st.sampled_from(["renew", "finish_owing", "release_failed", "release_refused"]),
            st.sampled_from([0, 99, 60_000]),
        ],
    ),
    (1, "half_a_lease", [WHICH, st.sampled_from(["finish_owing", "renew"]), st.booleans()]),
    (2, "pause", [st.sampled_from([500, 5_000, 120_000])]),
    (1, "unpause", []),
    (2, "settle", [st.booleans(), st.booleans()]),
    (2, "promise", [WHICH]),
    (1, "repeat", []),
    (1, "seize", [LIKELY]),
    (2, "erase", [WHICH, LIKELY]),
]
STEPS = st.sampled_from(
    [st.tuples(st.just(name), *arguments) for weight, name, arguments in WEIGHTED for _ in range(weight)]
).flatmap(lambda step: step)
