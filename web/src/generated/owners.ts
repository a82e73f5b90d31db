// What an owner's calls take, and what nodes say of themselves (hearth/client/prepared.py, market/manifest.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/owners.py.

export const OWNER_GAS = 300000n as const;

export const ARGUMENT_BYTES = 256 as const;

export const BYTE_GAS = 40n as const;

export const MANIFEST_VERSION = 1 as const;

export const MANIFEST_BYTES = 16384 as const;

export const MAX_STAKE = 1208925819614629174706175n as const;

export const START = "hearth worker start" as const;

export const RUNTIME_NAMES = { wasm: 1, docker: 2 } as const;
