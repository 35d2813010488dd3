"""What makes a case fail that holds something nobody has given a meaning: it must never pass unread."""


class UnknownToRunnerError(Exception):
    """A step, a key, a setting or an expectation of a record that the runner does not know."""
