// What one unit may leave: entries of its outputs, bytes of each of its logs (hearth/protocol/runtimes.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/outputs.py.

export const MAX_OUTPUT_ENTRIES = 16384 as const;

export const MAX_LOG_BYTES = 1048576 as const;
