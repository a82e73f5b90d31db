"""What tests of several folders share; what one folder alone needs lies there.

Contracts in this process, on revm
    evm       `Evm`, a chain in memory: compile, deploy, call, decode; `reverts` demands a reason
    world     `World`, a market on it with actors and factories: every contract test starts here
    evm_chain  `EvmChain`, these contracts behind the port that a client reads; `RealMarket` and `Shop` on it
    steps     what tests of the registries do again and again: claim a job, visit a boundary, compare credits
    vault     `Vault`, Escrow alone with its asset
    model     `Model`, the same market in plain Python, to compare with
    gas       what each call costs, measured on a `World`
    attesters  `Attested`, a market whose jobs attesters judge
    steward   `Stewarded`, a market that a Steward governs
    refusals  what a contract can refuse with, read from its source

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
    wall_clock  `Clock`, the wall clock of daemons, which a test sets
    attested  `Attested`, a town with a worker for jobs that two of three attesters judge, and what they do
    old_home  the home of an older Hearth that a test reads, written
    nonsense  logs that no contract of Hearth would write, emitted under a registry's own address
    readme    the README's commands, run as a user runs them

The page in a browser
    browser   Chromium; `watched`, a page whose complaints fail the test; `tab_to`, the keyboard's way through it
    node      the Node that the page's tools run on, and whether it and they are here
    web_page  what the page shows, read out of it: tables, terms, failures; `go` to a route, and waits
    web_axe   what keeps people out: axe-core's findings, and what is wider than a small screen
    web_desk  `Desk`, the page at #/submit as its reader uses it; `serve`, the address of a town's `hearth web`
    web_sign_desk  `SignDesk`, the page at #/sign as its reader uses it
    web_wallet  `WebWallet`, a wallet in the page whose calls are answered and signed here
    web_extension  `ExtensionWallet`, a wallet that is a browser's extension
    web_market  `WebMarket`, a running market with jobs of every kind, and `hearth web` as processes
    web_rpc   `WebRpc`, a provider before an honest one that a test makes lie, refuse, fail or wait
    web_chain  `WebChain`, a market on the scripted chain behind JSON-RPC, and what it was asked
    web_folders  a job of folders of a size, and a program that says what it found in them
    web_host  `static_host`, a host of the built page that knows nothing of it
    web_process  `hearth web`'s server as a process of its own, without a market

No chain
    build     terms, nodes, specs and networks: a test names what it is about
    scripted  `ScriptedMarket`, typed reads of contracts that answer what a test lets them
    fake_chain  `FakeChain`, the scripted chain, the port's second implementation
    hints     the commands that a hint names, read as click reads them
    http      servers on loopback that answer as a test says, by TLS too
    liars     JSON-RPC providers that lie, break or stall
    other_chain  a JSON-RPC provider that answers as other chains do: no price, no bloom, an L1 fee, other numbers

The machine
    engine    `Engine`, a Docker engine of a test's own, which can be killed
    played_gpu  `PlayedMachine`, a machine with GPUs that a played driver tells of, and their CDI spec
    nvidia_ctk  NVIDIA's container toolkit, and the CDI spec that it writes of a played machine
    played_amd  `AmdMachine`, the files by which a kernel tells of AMD's GPUs, and their CDI spec
    disks     small disks of their own, for tests that fill one
    plain_user  a program run as a user with no rights but those of its groups
    canary    known secrets, and the places in which others could read them

    require   what a test does where a real part is missing
"""
