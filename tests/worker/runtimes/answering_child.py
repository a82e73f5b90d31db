"""A sandbox child whose engine was taken over, for test_wasm.py: its answer is what its module's file holds."""

import json
import os
import sys
from pathlib import Path

request = json.loads(sys.stdin.read())
os.write(int(sys.argv[2]), b'{"phase": "run"}\n' + Path(request["module"]).read_bytes() + b"\n")
