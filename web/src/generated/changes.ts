// What a market's Steward may be asked for, and its times in seconds (hearth/market/changes.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/changes.py.

export const CHANGE_OP = {
  SET_POLICY: 1,
  SET_MINIMUM_STAKE: 2,
  OFFER_POSTS: 3,
  OFFER_REGISTRATIONS: 4,
  OFFER_COUNCIL: 5,
  SEAT_GUARDIAN: 6,
} as const;

export const ADDRESS_OPS = [3, 4, 5, 6] as const;

export const OFFERS = { 3: "posts", 4: "registrations" } as const;

export const GOVERNED = { posts: "Rules", registrations: "NodeRegistry" } as const;

export const DROPPED = 1 as const;

export const EXECUTED = 2 as const;

export const LIFE = 1209600 as const;

export const POLICY_GRACE = 86400 as const;

export const PAUSE_TIME = 604800 as const;

export const PAUSE_EVERY = 2592000 as const;
