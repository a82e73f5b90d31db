// What bounds a CAR file (SPEC, "Job spec"; hearth/storage/car.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/car.py.

export const VERSION = 1 as const;

export const MAX_HEADER_BYTES = 65536 as const;

export const MAX_ROOTS = 64 as const;

export const MAX_SECTION_BYTES = 2097408 as const;
