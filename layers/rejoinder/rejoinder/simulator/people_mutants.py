"""The rules about people, newer messages and patience, switched off one at a time: see `simulator.mutants`."""

from rejoinder import answering, attempt, handover
from rejoinder.handover import Handover
from rejoinder.protocol import pausing, promising, transitions, wakeups
from rejoinder.protocol.conversation import TurnRecord
from rejoinder.simulator import people_mutations
from rejoinder.simulator.bound import Bound
from rejoinder.simulator.mutant import Mutant

_quiet = Bound.quiet

PEOPLE_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "commit_in_a_pause",
        "commit demands that nobody has taken the conversation since the claim",
        _quiet(messages=1, pauses=1),
        "nothing_is_committed_while_paused",
        ((transitions, "commit", people_mutations.commit_in_a_pause),),
    ),
    Mutant(
        "claim_in_a_pause",
        "nobody generates while a person has the conversation",
        _quiet(messages=1, pauses=1),
        "nothing_is_begun_while_paused",
        ((transitions, "claim", people_mutations.claim_in_a_pause),),
    ),
    Mutant(
        "resume_in_a_pause",
        "nobody sends what was committed before, while a person has the conversation",
        _quiet(messages=1, pauses=1, refusals=1),
        "nothing_is_begun_while_paused",
        ((transitions, "resume", people_mutations.resume_in_a_pause),),
    ),
    Mutant(
        "pause_before_arming",
        "the wake-up for a pause's end is armed before the pause is set",
        _quiet(messages=1, pauses=1, crashes=1),
        "pauses_are_woken",
        ((Handover, "pause", people_mutations.pause_before_arming),),
    ),
    Mutant(
        "nothing_follows_in_a_pause",
        "the pause's own wake-up, come too early, is armed again",
        _quiet(messages=1, pauses=1, early=1),
        "a_pause_loses_nothing",
        ((wakeups, "following", people_mutations.following_none_in_a_pause),),
    ),
    Mutant(
        "early_end_forgotten",
        "so is one that came before its pause was set, or while nothing is owed",
        _quiet(messages=1, pauses=1, early=1),
        "pauses_are_woken",
        ((wakeups, "before_a_pauses_end", lambda *_: False),),
    ),
    Mutant(
        "settle_everything",
        "what a person said counts for what was written before",
        _quiet(messages=1, unread=1, pause_ms=1),
        "a_person_answers_what_was_there_to_read",
        ((handover, "written_before", people_mutations.written_ever),),
    ),
    Mutant(
        "words_kept_for_nothing",
        "whoever claims leaves to a person what they have answered",
        _quiet(messages=2, operators=1, pause_ms=1),
        "what_a_person_answered_is_theirs",
        ((attempt, "answered_in", people_mutations.nothing_answered),),
    ),
    Mutant(
        "settle_behind_the_holder",
        "who generates loses its lease where a person has the conversation, and room is needed",
        _quiet(messages=2, pauses=1, max_pending=1),
        "nobody_is_put_off",
        ((pausing, "settle", people_mutations.settle_unless_held),),
    ),
    Mutant(
        "settle_without_received",
        "what a person said counts for all that they have read, or is looked at anew",
        _quiet(messages=1, optouts=1, operators=1, pause_ms=1),
        "commits_miss_nothing",
        ((pausing, "settle", people_mutations.settle_without_received),),
    ),
    Mutant(
        "absorbed_left_out",
        "messages that joined the turn are covered by its reply",
        _quiet(messages=2, joins=1, max_superseded=0),
        "absorbed_messages_are_covered_once",
        ((attempt, "rendered", people_mutations.rendered_without_absorbed),),
    ),
    Mutant(
        "promise_regardless",
        "patience is asked for once",
        _quiet(messages=1, moment=1, slow=2, bot_failures=1),
        "a_moment_is_said_once",
        ((promising, "promise", people_mutations.promise_regardless),),
    ),
    Mutant(
        "restart_unbounded",
        "at the bound on superseding the bot does not stop for newer messages",
        _quiet(messages=2, restarts=1, max_superseded=0),
        "superseding_is_bounded",
        ((answering, "Grant", people_mutations.grant_unbounded),),
    ),
    Mutant(
        "words_never_looked_up",
        "a redelivery of what a person said is looked up in the history",
        _quiet(messages=1, operators=1, redeliveries=1, pause_ms=1_000),
        "what_a_person_said_is_kept",
        ((Handover, "in_history", people_mutations.never_in_history),),
    ),
    Mutant(
        "words_by_the_second",
        "what a person said is kept under its time and its words",
        _quiet(messages=0, operators=2),
        "what_a_person_said_is_kept",
        ((TurnRecord, "key", property(people_mutations.unhandled_by_key)),),
    ),
)
