"""What people read when Spark fails."""

from __future__ import annotations

from liveboard.pipeline.generation import one_line


def test_an_error_is_one_line_that_ends_with_what_was_at_the_bottom_of_it() -> None:
    text = "Job aborted\n\tat A.java:1\nCaused by: a\n\tat B.java:2\nCaused by: No space left on device\n"
    assert one_line(text) == "Job aborted at A.java:1 Caused by: a at B.java:2 Caused by: No space left on device"
    assert one_line(text.replace("B.java:2", "x" * 600)).endswith("(No space left on device)")


def test_a_full_heap_is_a_sentence_that_says_what_to_do() -> None:
    text = "Task failed\nCaused by: java.lang.OutOfMemoryError: Java heap space\n\tat Some.java:1"
    assert one_line(text).startswith("Spark ran out of memory: ")
    assert "spark.driver.memory" in one_line(text)
    assert "Some.java" not in one_line(text)
