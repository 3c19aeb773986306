"""Believable data, to try a board with."""
