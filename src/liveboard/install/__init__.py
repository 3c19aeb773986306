"""What pip cannot install by itself: Java's libraries, and the caches that make it start faster."""
