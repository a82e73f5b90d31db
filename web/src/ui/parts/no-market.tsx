// What stands where a market's figures would, while the page knows of none.

export function NoMarket() {
  return (
    <>
      <h1>No market yet</h1>
      <p>
        This copy of the page was opened without a network file. Run <code>hearth web</code> and open the address that it
        prints.
      </p>
    </>
  );
}
