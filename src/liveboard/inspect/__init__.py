"""What a topic holds, found by looking at some of its records."""
