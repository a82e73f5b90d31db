// Where the page lies: a path gateway gives one origin to everybody, so nothing is to be signed or kept there.

export function sharedOrigin(location: Pick<Location, "pathname">): boolean {
  return /^\/(ipfs|ipns)\//.test(location.pathname);
}
