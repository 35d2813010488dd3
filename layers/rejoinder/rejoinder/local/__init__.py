"""Tools for the desk: the whole system in one program (`rejoinder dev`), its playground, and the command line."""
