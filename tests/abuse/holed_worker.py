"""A worker whose WebAssembly children have a hole in their engine: `python -m tests.abuse.holed_worker --config ..`."""

from worker.__main__ import main
from worker.runtimes import wasm

if __name__ == "__main__":
    wasm.CHILD = "tests.abuse.holed_child"
    main()
