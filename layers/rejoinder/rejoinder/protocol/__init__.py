"""THE PROTOCOL: pure functions over one row per conversation. No clock, no randomness, no I/O, no environment."""
