"""The names by which programs of ours find files in the folder they are started in, or in one above it.

Whoever can write a file of such a name there has a say in what a command does. So results never bring one (`FOUND`),
and one that lies there is used only once a person has said so (hearth.config.trust).
"""

from __future__ import annotations

from typing import Final

PROJECT_FILE: Final = "hearth.toml"
"""Settings of a project: the command line, in this folder or above."""
WORKER_FILE: Final = "worker.toml"
"""A worker's settings, where no --config names others."""
KEEPER_FILE: Final = "keeper.toml"
"""A keeper's settings. No program looks for it, and every page calls it so."""
NETWORKS: Final = "networks"
"""The folder of network files: the command line, and the scripts that ape runs."""
IGNORE_FILE: Final = ".hearthignore"
"""Which files of a folder are left out where it is packed."""
APE_FILES: Final = ("ape-config.yaml", "ape-config.yml")
"""What ape is told before it runs a script of ours."""

FOUND: Final = frozenset((PROJECT_FILE, WORKER_FILE, KEEPER_FILE, NETWORKS, IGNORE_FILE, *APE_FILES))
"""All of them, in lower case."""
