"""The live-table server: changelogs in, windows of tables out."""
