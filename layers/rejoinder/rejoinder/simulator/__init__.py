"""Production code under simulation: the real use cases, a world that decides who goes next."""
