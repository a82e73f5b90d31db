// The version of CAR files that are written (commands.md "Files of blocks, and gateways"; hearth/storage/car.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/car.py.

export const VERSION = 1 as const;
