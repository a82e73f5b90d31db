// How the two ends of the window's stream call each other.

export const INPAGE = "test-wallet-inpage";
export const CONTENT = "test-wallet-content";
