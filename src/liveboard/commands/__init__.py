"""The command line: one module per command, and what several of them need."""
