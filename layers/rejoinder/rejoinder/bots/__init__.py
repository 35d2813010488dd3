"""The bots: a plain function behind a port, and functions that are ready to use."""
