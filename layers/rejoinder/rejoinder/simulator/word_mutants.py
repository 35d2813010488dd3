"""The rules about edits and words of consent, switched off one at a time: see `simulator.mutants`."""

from rejoinder import answering, deliver, ingest
from rejoinder.protocol import amending, pausing, transitions
from rejoinder.protocol.conversation import Message
from rejoinder.simulator import word_mutations
from rejoinder.simulator.bound import Bound
from rejoinder.simulator.mutant import Mutant

_quiet = Bound.quiet

WORD_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "amend_under_a_lease",
        "no edit replaces what a holder has read",
        _quiet(messages=1, edits=1),
        "what_was_read_stays",
        ((amending, "amend", word_mutations.amend_under_a_lease),),
    ),
    Mutant(
        "older_edit_taken",
        "an older edit replaces no newer one",
        _quiet(messages=1, edits=2),
        "edits_never_go_back",
        ((amending, "amend", word_mutations.amend_whichever_stands),),
    ),
    Mutant(
        "edit_by_its_place",
        "an edit looks whose words stand at the place where it expects its message",
        _quiet(messages=2, edits=1),
        "edits_change_words_alone",
        ((amending, "amend", word_mutations.amend_by_place),),
    ),
    Mutant(
        "settled_as_read",
        "what a person's words settle has not been edited since it was read",
        _quiet(messages=1, edits=1, operators=1, pause_ms=1_000),
        "replies_answer_the_newest_words",
        ((pausing, "same", word_mutations.same_but_for_edits),),
    ),
    Mutant(
        "answered_edits_forgotten",
        "a late redelivery of an edit is looked up in the history",
        _quiet(messages=1, edits=1, redeliveries=1, late_edits="answer"),
        "edits_count_once",
        ((ingest, "LOOKED_BACK", 0),),
    ),
    Mutant(
        "stop_lost_in_a_flood",
        "a refused STOP counts all the same",
        _quiet(messages=1, optouts=1, max_pending=1),
        "the_last_word_stands",
        ((transitions, "overflow", word_mutations.overflow_without_words),),
    ),
    Mutant(
        "old_start_taken",
        "a START counts only where no STOP has come since",
        _quiet(messages=0, optouts=1, optins=1, lost=1, max_pending=0),
        "a_start_undoes_an_earlier_stop",
        ((transitions, "overruled", lambda *_: False),),
    ),
    Mutant(
        "sent_after_a_stop",
        "the row that the commit returned is looked at before the send",
        _quiet(messages=1, optouts=1, max_superseded=0),
        "who_opted_out_is_left_alone",
        ((deliver, "send", word_mutations.send_regardless),),
    ),
    Mutant(
        "next_part_after_a_stop",
        "so is that of the progress, before each further part",
        _quiet(messages=1, optouts=1, parts=2),
        "who_opted_out_is_left_alone",
        ((deliver, "send", word_mutations.send_looking_once),),
    ),
    Mutant(
        "nobody_is_asked",
        "the bot is asked, unless the author has opted out",
        _quiet(messages=1),
        "silence_has_a_reason",
        ((answering, "says_nothing", lambda *_: True),),
    ),
    Mutant(
        "start_is_shown",
        "the bot is shown no STOP and no START",
        _quiet(messages=1, optins=1),
        "the_bot_answers_no_stop_and_no_start",
        ((Message, "is_for_the_bot", property(lambda _: True)),),
    ),
)
