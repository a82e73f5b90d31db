// Where the page lies: a path gateway gives one origin to everybody, so nothing is to be signed or kept there.

// Gateways read a path as it is once its escapes are taken out; one that has none to take out is shared by nobody else.
export function sharedOrigin({ pathname }: Pick<Location, "pathname">): boolean {
  try {
    return /^\/(ipfs|ipns)\//i.test(decodeURIComponent(pathname));
  } catch {
    return true;
  }
}
