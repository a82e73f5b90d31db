// What bounds a canonical document (protocol.md "Result and report"; hearth/storage/canonical.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/canonical.py.

export const MAX_DOCUMENT_BYTES = 1048576 as const;

export const MAX_DEPTH = 64 as const;
