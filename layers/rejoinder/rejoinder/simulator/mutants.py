"""The protocol with one rule switched off at a time. Each must be caught by a checker, or the checkers have a hole.

Nothing in production can be switched off: a mutant puts another function in the place of a rule, here and for as long
as it is applied. `tests/simulation/test_mutants.py` explores each one.
"""

from dataclasses import replace

from rejoinder import attempt, deliver
from rejoinder.protocol import transitions, wakeups
from rejoinder.protocol.conversation import Row
from rejoinder.simulator import mutations
from rejoinder.simulator.bound import Bound
from rejoinder.simulator.moves import Moves
from rejoinder.simulator.mutant import Mutant
from rejoinder.simulator.people_mutants import PEOPLE_MUTANTS
from rejoinder.simulator.word_mutants import WORD_MUTANTS
from rejoinder.stores.memory import MemoryStore

_quiet = Bound.quiet

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "record_before_arming",
        "★ ingest arms a wake-up before it records",
        _quiet(messages=1, crashes=1),
        "nothing_is_owed_at_rest",
        stage=lambda stage: replace(stage, ingest_type=mutations.ingest_recording_first),
    ),
    Mutant(
        "owner_from_the_wake_up",
        "★ the owner is fresh for each handling of a wake-up",
        _quiet(messages=1, doubles=1),
        "ends_well",
        ((Moves, "fresh_owner", mutations.owner_of_the_wake_up),),
    ),
    Mutant(
        "unseen_message_is_dropped",
        "★ a wake-up whose message is not there yet is armed again",
        _quiet(messages=1, stalls=1),
        "nothing_is_owed_at_rest",
        ((wakeups, "unseen", lambda wake_up, row: False),),  # noqa: ARG005
    ),
    Mutant(
        "unseen_message_for_ever",
        "a wake-up armed again keeps its first armed_at_ms",
        _quiet(messages=1, crashes=1),
        "no_wake_up_is_given_up",
        ((wakeups, "following", mutations.following_for_ever),),
    ),
    Mutant(
        "nothing_follows",
        "★ however a wake-up ends, another is armed while something is owed",
        _quiet(messages=2, stalls=1, max_superseded=0),
        "nothing_is_owed_at_rest",
        ((wakeups, "following", mutations.following_nothing),),
    ),
    Mutant(
        "not_due_is_dropped",
        "★ a wake-up that came before its own message was due is armed again",
        _quiet(messages=1, early=1),
        "nothing_is_owed_at_rest",
        ((wakeups, "following", mutations.following_unless_not_due),),
    ),
    Mutant(
        "superseding_unbounded",
        "the bound on superseding",
        _quiet(messages=2, max_superseded=0),
        "superseding_is_bounded",
        stage=lambda stage: replace(stage, timing=replace(stage.timing, max_superseded=20)),
    ),
    Mutant(
        "no_recheck",
        "commit demands that nothing newer was recorded",
        _quiet(messages=2),
        "commits_miss_nothing",
        ((transitions, "commit", mutations.commit_without_recheck),),
    ),
    Mutant(
        "commit_without_first_legs",
        "★ commit demands lease and watermark",
        _quiet(messages=1, expiries=1),
        "older_tokens_change_nothing",
        ((transitions, "commit", mutations.commit_without_first_legs),),
    ),
    Mutant(
        "commit_without_watermark",
        "★ commit demands the watermark of the claim (with repeated writes)",
        _quiet(messages=2, lost=1, max_superseded=0),
        "commits_drop_what_they_cover",
        ((transitions, "commit_partial", mutations.partial_without_watermark),),
    ),
    Mutant(
        "window_left_open",
        "commit closes the window that joined messages have opened (so it is tried before commit_partial)",
        _quiet(messages=2, joins=1),
        "no_window_without_pending",
        ((transitions, "commit", mutations.commit_leaving_the_window),),
    ),
    Mutant(
        "no_dedupe",
        "record tests the ids in the same write",
        _quiet(messages=1, redeliveries=1),
        "messages_are_counted_once",
        ((transitions, "record", mutations.record_without_dedupe),),
    ),
    Mutant(
        "ascending_removal",
        "entries of a list are removed in descending order",
        _quiet(messages=2),
        "commits_drop_what_they_cover",
        ((transitions, "covered", mutations.covered_in_ascending_order),),
    ),
    Mutant(
        "state_unconditional",
        "STATE is replaced by newer ones alone",
        _quiet(messages=2, expiries=1),
        "state_never_goes_back",
        ((MemoryStore, "put_state", mutations.put_state_always),),
    ),
    Mutant(
        "turn_unconditional",
        "TURN# is written once",
        _quiet(messages=1, expiries=1),
        "turns_are_written_once",
        ((MemoryStore, "put_turn", mutations.put_turn_always),),
    ),
    Mutant(
        "record_unrecognised",
        "record recognises its own first try",
        _quiet(messages=1, lost=1),
        "own_writes_are_recognised",
        ((transitions, "record", mutations.record_unrecognised),),
    ),
    Mutant(
        "claim_unrecognised",
        "claim recognises its own first try",
        _quiet(messages=1, lost=1),
        "own_writes_are_recognised",
        ((transitions, "claim", mutations.claim_unrecognised),),
    ),
    Mutant(
        "commit_unrecognised",
        "commit recognises its own first try",
        _quiet(messages=1, lost=1),
        "own_writes_are_recognised",
        ((transitions, "commit", mutations.commit_unrecognised),),
    ),
    Mutant(
        "finish_unrecognised",
        "finish recognises its own first try",
        _quiet(messages=1, lost=1),
        "own_writes_are_recognised",
        ((transitions, "finish", mutations.finish_unrecognised),),
    ),
    Mutant(
        "release_unrecognised",
        "release recognises its own first try",
        _quiet(messages=2, lost=1),
        "own_writes_are_recognised",
        ((transitions, "release_superseded", mutations.release_unrecognised),),
    ),
    Mutant(
        "claim_regardless_of_retry",
        "nobody generates before retry_at_ms",
        _quiet(messages=1, bot_failures=1, early=1),
        "nobody_tries_before_retry_at",
        ((transitions, "due_at_ms", mutations.due_regardless_of_retry),),
    ),
    Mutant(
        "resume_regardless_of_retry",
        "nobody sends before retry_at_ms",
        _quiet(messages=1, refusals=1, early=1),
        "nobody_tries_before_retry_at",
        ((transitions, "resume", mutations.resume_regardless_of_retry),),
    ),
    Mutant(
        "live_lease_taken",
        "a live lease is respected",
        _quiet(messages=2),
        "live_leases_are_respected",
        ((transitions, "claim", mutations.claim_taking_leases),),
    ),
    Mutant(
        "overflow_forgotten",
        "commit takes off the refused messages that the turn was told of, and no more",
        _quiet(messages=2, max_pending=1),
        "refused_messages_are_told",
        ((transitions, "covered", mutations.covered_forgetting_overflow),),
    ),
    Mutant(
        "refused_for_ever",
        "a refusal makes the next send safe, and no later one",
        _quiet(messages=1, refusals=1, crashes=1),
        "no_reply_is_sent_twice",
        ((Row, "refused", property(lambda row: row.outbox is not None and row.outbox.refused_token is not None)),),
    ),
    Mutant(
        "silence_without_outbox",
        "a silent reply has an outbox too, so that a crash loses no history and no state",
        _quiet(messages=1, crashes=1, parts=0),
        "every_reply_is_in_the_history",
        (
            (transitions, "covered", mutations.covered_without_silent_outbox),
            (attempt, "commit", mutations.commit_keeping_a_copy),
            (attempt, "deliver", mutations.deliver_from_the_copy),
        ),
    ),
    Mutant(
        "doubt_ignored",
        "what is in doubt is not sent again on hold",
        _quiet(messages=1, crashes=1),
        "no_reply_is_sent_twice",
        ((deliver, "resolved", mutations.resolved_as_unsent),),
    ),
    *PEOPLE_MUTANTS,
    *WORD_MUTANTS,
)
