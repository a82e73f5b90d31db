"""What the server of forked programs imports first."""

from tests.chaos.wall import preload

preload()
