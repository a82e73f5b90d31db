"""A sandbox child that says it started the guest and then hangs, for test_wasm.py."""

import os
import sys
import time

sys.stdin.read()
os.write(int(sys.argv[2]), b'{"phase": "run"}\n')
time.sleep(600)
