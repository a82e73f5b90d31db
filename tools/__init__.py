"""The project's own tools: checks, builds and the real services that the tests talk to. Not part of the wheel."""
