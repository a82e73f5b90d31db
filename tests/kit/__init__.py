"""What tests of several folders share; what one folder alone needs lies there.

Contracts in this process, on revm
    evm       `Evm`, a chain in memory: compile, deploy, call, decode; `reverts` demands a reason
    world     `World`, a market on it with actors and factories: every contract test starts here
    steps     what tests of the registries do again and again: claim a job, visit a boundary, compare credits
    vault     `Vault`, Escrow alone with its asset
    model     `Model`, the same market in plain Python, to compare with
    gas       what each call costs, measured on a `World`

A real chain
    anvil     `AnvilEvm`, an `Evm` that is an anvil, so that a `World` lives on a node; `bare_chain` has no market;
              `need_anvil` skips, or fails where CI says so
    rpc_evm   `RpcEvm`, what `AnvilEvm` and `GethEvm` share
    geth_evm  `GethEvm`, an `Evm` that is a geth under the rules of a fork
    geth      `Geth`, a process that can be stopped and killed; `shared_chain`, the one that runs for every test
    live      `LiveMarket`, a `World` on anvil whose clock the test sets, and keepers in this process
    running   `RunningMarket`, a devnet in real time with senders and processes, as users start it
    town      `Town`, a running market used through the command line
    exchange  `Exchange`, a running market of workers with jobs of their own, killed and started again
    own_market  `OwnMarket`, a market deployed on a geth by the README's commands, with a worker and a keeper
    readme    the README's commands, run as a user runs them
    web_desk  `Desk`, the page at #/submit as its reader uses it
    web_sign_desk  `SignDesk`, the page at #/sign as its reader uses it
    web_extension  `ExtensionWallet`, a wallet that is a browser's extension

No chain
    build     terms, nodes, specs and networks: a test names what it is about
    scripted  `ScriptedMarket`, typed reads of contracts that answer what a test lets them
    hints     the commands that a hint names, read as click reads them
    http      servers on loopback that answer as a test says, by TLS too
    liars     JSON-RPC providers that lie, break or stall

    require   what a test does where a real part is missing
"""
