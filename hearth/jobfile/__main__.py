"""Print the published JSON Schema of a job spec: `python -P -m hearth.jobfile schema`."""

from __future__ import annotations

import json
import sys
from typing import Any

from hearth.jobfile.model import JobSpec


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a job file; equal to hearth/jobfile/job.schema.json."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:hearth:job:1",
        **JobSpec.model_json_schema(),
    }


def schema_text() -> str:
    """Return the schema as the committed file holds it."""
    return json.dumps(schema(), indent=2, sort_keys=True) + "\n"


def main(arguments: list[str]) -> int:
    """Print the schema; 2 for any other argument."""
    if arguments != ["schema"]:
        sys.stderr.write("usage: python -P -m hearth.jobfile schema\n")
        return 2
    sys.stdout.write(schema_text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
