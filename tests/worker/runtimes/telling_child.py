"""A sandbox child that says what it was started with, for test_wasm.py."""

import json
import os
import stat
import sys

request = sys.stdin.read()
kinds = [os.fstat(int(fd)).st_mode for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
files = sorted("pipe" if stat.S_ISFIFO(mode) else "other" for mode in kinds)
print(json.dumps({"environ": dict(os.environ), "argv": sys.argv, "files": files}))
os.write(int(sys.argv[2]), b'{"phase": "run"}\n{"status": "exit", "detail": "told"}\n')
