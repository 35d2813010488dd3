"""Show a part that a channel has no means for as text."""

from collections.abc import Collection, Sequence

from rejoinder.ports import Part, Permanent, Raw, Reply, Text, part_text


def degraded(reply: Reply, shows: Collection[type[Part]]) -> Sequence[Part]:
    """Keep the parts whose kind the channel shows, write the others as text, and leave out what is blank.

    Args:
        reply: what the bot says.
        shows: the kinds that the channel shows as they are.

    Raises:
        Permanent: nothing is left to show.
    """
    parts = [part if type(part) in shows else Text(part_text(part)) for part in reply.parts]
    shown = [part for part in parts if isinstance(part, Raw) or part_text(part).strip()]
    if not shown:
        raise Permanent("the reply has no part that is not blank; to say nothing, a bot returns None")
    return shown
