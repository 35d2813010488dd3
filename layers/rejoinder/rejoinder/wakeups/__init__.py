"""The lanes that bring a wake-up to the generator."""
