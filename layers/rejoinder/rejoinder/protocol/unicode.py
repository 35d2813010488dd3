"""Text that survives UTF-8, JSON and the databases behind them."""

from typing import Any


def valid(text: str) -> str:
    """Remove NUL and replace lone surrogates."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def valid_throughout(value: Any) -> Any:
    """Make every text in what JSON can say valid; what is none of that comes back as it is."""
    match value:
        case str():
            return valid(value)
        case dict():
            return {valid_throughout(name): valid_throughout(inner) for name, inner in value.items()}
        case list():
            return [valid_throughout(inner) for inner in value]
    return value
