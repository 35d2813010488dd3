"""The real clock and the real randomness."""

import secrets
import time


class SystemClock:
    """Implements `ports.Clock`."""

    def now_ms(self) -> int:
        """Epoch milliseconds, UTC."""
        return time.time_ns() // 1_000_000


class SystemIds:
    """Implements `ports.Ids`."""

    def fresh(self) -> str:
        """128 random bits as 32 hex digits."""
        return secrets.token_hex(16)
