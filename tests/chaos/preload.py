"""What the server of forked programs imports first."""

from tests.kit.wall_clock import preload

preload()
