"""Text that survives UTF-8, JSON and the databases behind them."""


def valid(text: str) -> str:
    """Remove NUL and replace lone surrogates."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
