// What bounds a result and a report that are read (commands.md "Reading results"; hearth/client/job/results.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/results.py.

export const MAX_DETAIL = 4096 as const;

export const FAR_MOMENT = 1099511627776 as const;
