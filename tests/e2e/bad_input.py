"""The table of bad input: what is wrong, and what the command line says to it.

Each row is a job file, or a command, that is wrong in one way; tests/e2e/test_bad_input.py runs it on a real market and
asserts exit code, error code and hint, and that balances, nonce and files are what they were before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

GOOD = """\
version: 1
name: good
runtime: wasm
module: "./good.wasm"
outputs: [{path: /out, required: false, max_size: 1MiB}]
resources: {cpus: 1, memory: 64MiB}
limits: {runtime: 10s, deadline: 1h}
price: {max_rate: "1.20/h"}
"""
"""A job that one can submit; a row replaces a part of it."""


@dataclass(frozen=True)
class Row:
    """One kind of bad input.

    `edits` replace texts of `GOOD`; `command` is what is run in place of `submit job.yaml`, with `{name}` of a prepared
    place; `code`, `error` and `hint` are what must come; `environ` goes on top of the environment.
    """

    name: str
    code: int
    error: str
    hint: str
    edits: tuple[tuple[str, str], ...] = ()
    command: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ran:
    """A job that runs and fails: its program (a file that the test makes), and the status that it ends with."""

    name: str
    program: str
    statuses: tuple[str, ...]
    edits: tuple[tuple[str, str], ...] = ()


def _spec(name: str, error: str, hint: str, old: str, new: str, code: int = 2) -> Row:
    return Row(name, code, error, hint, ((old, new),))


_PRICE = 'price: {max_rate: "1.20/h"}'
_LIMITS = "limits: {runtime: 10s, deadline: 1h}"
_MODULE = 'module: "./good.wasm"'
_ABSENT_CID = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"

SPEC_ROWS = (
    _spec("misspelt key", "UNKNOWN_KEY", 'did you mean "limits"?', "limits:", "limit:"),
    _spec("unknown key", "UNKNOWN_KEY", "known here", "name: good", "name: good\nzzzzzz: 1"),
    _spec("missing module", "NO_SOURCE", "correct the path", "./good.wasm", "./gone.wasm"),
    _spec("module in the home of nobody", "NO_SOURCE", "write its path out", "./good.wasm", "~nobody-here/good.wasm"),
    _spec("no program", "BAD_SPEC", "module", _MODULE, ""),
    _spec("bad CID", "BAD_CID", "copy it again", "./good.wasm", "ipfs://bafynonsense"),
    _spec("unreachable CID", "BLOCK_MISSING", "hearth doctor", "./good.wasm", f"ipfs://{_ABSENT_CID}", 9),
    _spec("module that is none", "NO_WASM", "docs/JOB.md", "./good.wasm", "./job.yaml"),
    _spec("module cut short", "BAD_MODULE", "copy it again", "./good.wasm", "./cut.wasm"),
    _spec("module of a browser", "UNKNOWN_IMPORT", "link", "./good.wasm", "./stranger.wasm"),
    _spec("module without main", "NO_ENTRY", "main", "./good.wasm", "./library.wasm"),
    _spec("module without memory", "NO_MEMORY", "docs/JOB.md", "./good.wasm", "./mindless.wasm"),
    _spec("module with threads", "UNSUPPORTED_MODULE", "without", "./good.wasm", "./threads.wasm"),
    _spec("module with more memory than asked", "MEMORY_SHORT", "125MiB", "./good.wasm", "./greedy.wasm"),
    _spec("file name that hides text", "UNSAFE_PATH", "rename the file", _LIMITS, f"{_LIMITS}\nworkdir: ./hides", 9),
    _spec("no price", "NO_PRICE", "--max-total", _PRICE, ""),
    _spec("unquoted amount", "UNQUOTED", "quote it", '"1.20/h"', "1.20"),
    _spec("rate without time", "BAD_RATE", "per hour", '"1.20/h"', '"1.20"'),
    _spec("rate in another asset", "BAD_AMOUNT", 'amounts are in ETH, such as "0.60 ETH"', '"1.20/h"', '"0.01 USDC/h"'),
    _spec("deadline in the past", "BAD_DEADLINE", "raise limits.deadline", "deadline: 1h",
          'deadline: "2020-01-01T00:00:00Z"'),
    _spec("output larger than any disk", "NO_WORKER", "--anyway", "max_size: 1MiB", "max_size: 100TiB", 8),
    _spec("decimal size", "BAD_SIZE", "did you mean", "64MiB", "64MB"),
    # every field of the terms, out of range
    _spec("runtime zero", "BAD_SPEC", "", "runtime: 10s", "runtime: 0s"),
    _spec("runtime above 30 days", "BAD_SPEC", "", "runtime: 10s", "runtime: 31d"),
    _spec("runtime without unit", "BAD_UNIT", '"10s"', "runtime: 10s", "runtime: 10"),
    _spec("deadline too near", "BAD_DEADLINE", "limits", "deadline: 1h", "deadline: 5s"),
    _spec("deadline no time", "BAD_SPEC", "6h", "deadline: 1h", "deadline: soon"),
    _spec("units above 2^20", "BAD_SPEC", "", _LIMITS, f"{_LIMITS}\narray: {{units: 1048577}}"),
    _spec("units zero", "BAD_SPEC", "", _LIMITS, f"{_LIMITS}\narray: {{units: 0}}"),
    _spec("chunk not built", "NO_CHUNK", "chunk: 1", _LIMITS, f"{_LIMITS}\narray: {{units: 4, chunk: 2}}"),
    _spec("chunk does not divide", "BAD_SPEC", "", _LIMITS, f"{_LIMITS}\narray: {{units: 4, chunk: 3}}"),
    _spec("leases times attempts", "BAD_SPEC", "attempts", _LIMITS,
          f"{_LIMITS}\narray: {{units: 1048576}}\nretry: {{attempts: 8}}\nverify: {{replicas: 3}}"),
    _spec("replicas not built", "NO_REPLICAS", "remove replicas", _LIMITS, f"{_LIMITS}\nverify: {{replicas: 3}}"),
    _spec("quorum in the job file", "UNKNOWN_KEY", "known here", _LIMITS,
          f"{_LIMITS}\nverify: {{attesters: ./attesters.yaml, quorum: 1}}"),
    _spec("referee not built", "NO_REFEREE", "mode: none", _LIMITS, f"{_LIMITS}\nverify: referee"),
    _spec("retrial not built", "NO_RETRIAL", "mode: none", _LIMITS, f"{_LIMITS}\nverify: {{mode: retrial}}"),
    _spec("attested by nobody", "BAD_SPEC", "add attesters", _LIMITS, f"{_LIMITS}\nverify: attested"),
    _spec("attesters without a file", "NO_ATTESTERS", "correct the path", _LIMITS,
          f"{_LIMITS}\nverify: {{attesters: ./gone.yaml}}"),
    _spec("attesters in a file that is no set", "BAD_ATTESTERS", "quorum", _LIMITS,
          f"{_LIMITS}\nverify: {{attesters: ./good.wasm}}"),
    _spec("attesters in a job file", "BAD_ATTESTERS", "quorum", _LIMITS,
          f"{_LIMITS}\nverify: {{attesters: ./job.yaml}}"),
    _spec("window above 7 days", "BAD_SPEC", "", _LIMITS,
          f"{_LIMITS}\nverify: {{attesters: ./attesters.yaml, window: 8d}}"),
    _spec("window without a judge", "BAD_SPEC", "remove window", _LIMITS,
          f"{_LIMITS}\nverify: {{mode: none, window: 2h}}"),
    _spec("match window above 300", "BAD_SPEC", "", _LIMITS, f"{_LIMITS}\nmatch: {{window: 301s}}"),
    _spec("attempts zero", "BAD_SPEC", "", _LIMITS, f"{_LIMITS}\nretry: {{attempts: 0}}"),
    _spec("attempts nine", "BAD_SPEC", "", _LIMITS, f"{_LIMITS}\nretry: {{attempts: 9}}"),
    _spec("checkpoint outside /out", "BAD_SPEC", "/out/data", _LIMITS,
          f"{_LIMITS}\ncheckpoint: {{every: 3s, path: /tmp/c}}"),
    _spec("checkpoint that is /out", "BAD_SPEC", "/out/data", _LIMITS,
          f"{_LIMITS}\ncheckpoint: {{every: 3s, path: /out}}"),
    _spec("checkpoint never made", "BAD_SPEC", "limits.runtime", _LIMITS,
          f"{_LIMITS}\ncheckpoint: {{every: 5d, path: /out/c}}"),
    _spec("checkpoint oftener than the market takes", "BAD_SPEC", "use 2s", _LIMITS,
          f"{_LIMITS}\ncheckpoint: {{every: 1s, path: /out/c}}"),
    _spec("checkpoint of a unit billed by fuel", "BAD_SPEC", "billing: metered", _PRICE,
          f"{_PRICE.removesuffix('}')}, billing: fuel}}\ncheckpoint: {{every: 3s, path: /out/c}}"),
    _spec("parent that is no job", "NO_PARENT", "hearth jobs --all", _LIMITS, f'{_LIMITS}\nafter: "0x{"ab" * 32}"'),
    _spec("parent named twice", "BAD_SPEC", "keep one condition", _LIMITS,
          f'{_LIMITS}\nafter: ["0x{"ab" * 32}", {{job: "0x{"ab" * 32}", if: always}}]'),
    _spec("sixteen parents", "BAD_SPEC", "", _LIMITS,
          f"{_LIMITS}\nafter: {json.dumps([f'0x{number:064x}' for number in range(16)])}"),
    _spec("end of a parent unknown", "BAD_SPEC", "", _LIMITS,
          f'{_LIMITS}\nafter: {{job: "0x{"ab" * 32}", if: never}}'),
    _spec("outputs of a parent as inputs", "BAD_SPEC", "/in/data", _LIMITS,
          f"{_LIMITS}\ninputs: [{{src: ./good.wasm, dst: /in/parents/0}}]"),
    _spec("keep that is no yes or no", "BAD_SPEC", "without quotes", _LIMITS, f"{_LIMITS}\nverify: {{keep: 'yes'}}"),
    _spec("parent no id", "BAD_SPEC", "hearth jobs", _LIMITS, f'{_LIMITS}\nafter: ["0xabc"]'),
    _spec("keeper fee too small", "BAD_PRICE", "use", _PRICE, 'price: {max_rate: "1.20/h", keeper_fee: "0.000000001"}'),
    _spec("price too small", "PRICE_TOO_SMALL", "that the contract takes", _PRICE, 'price: {max_total: "0.0000001"}'),
    _spec("rate too small", "PRICE_TOO_SMALL", "that the contract takes", '"1.20/h"', '"0.0000000001/h"'),
    _spec("price beyond the chain", "BAD_PRICE", "lower", '"1.20/h"', '"99999999999999/h"'),
    _spec("billing unknown", "BAD_SPEC", "", _PRICE, 'price: {max_rate: "1.20/h", billing: hourly}'),
    _spec("cpus above 1023", "BAD_SPEC", "", "cpus: 1", "cpus: 1024"),
    _spec("memory zero", "BAD_SPEC", "", "memory: 64MiB", "memory: 0B"),
    Row("memory below a container's least", 2, "BAD_SPEC", 'memory: "6MiB", or more',
        edits=(("runtime: wasm", "runtime: docker"), (_MODULE, f'image: "x@sha256:{"0" * 64}"'),
               ("memory: 64MiB", "memory: 1MiB"))),
    _spec("gpus above 63", "BAD_SPEC", "", "cpus: 1", "cpus: 1, gpu: {count: 64}"),
    _spec("gpu for wasm", "BAD_SPEC", "docker", "cpus: 1", "cpus: 1, gpu: {count: 1}"),
    _spec("unknown country", "BAD_COUNTRY", "", "cpus: 1", 'cpus: 1, regions: ["zz"]'),
    _spec("confidential input not built", "NO_ENCRYPT", "encrypt", _LIMITS,
          f"{_LIMITS}\ninputs: [{{src: ./good.wasm, dst: /in/x, encrypt: true}}]"),
    _spec("secret in env", "SECRET_IN_ENV", "keep secrets out of it", _LIMITS, f'{_LIMITS}\nenv: {{API_KEY: "x"}}'),
    _spec("price above every worker's reach", "PRICE_TOO_LOW", 'max_rate: "0.6 ETH/h"; hearth offers', '"1.20/h"',
          '"0.01/h"', 8),
    _spec("more memory than any worker has", "NO_WORKER", "--anyway", "memory: 64MiB", "memory: 900GiB", 8),
)  # fmt: skip

PLACE_ROWS = (
    Row("funds short for the escrow", 6, "FUNDS_SHORT", "hearth wallet balance",
        command=("submit", "{job}", "--account", "poor", "--password-file", "{password}")),
    Row("funds short for gas", 6, "FUNDS_SHORT", "hearth wallet balance",
        command=("submit", "{job}", "--account", "broke", "--password-file", "{password}")),
    Row("wrong password", 3, "WRONG_PASSWORD", "--password-file",
        command=("submit", "{job}", "--account", "dev", "--password-file", "{wrong_password}")),
    Row("no password and no terminal", 3, "NO_PASSWORD", "--password-file",
        command=("submit", "{job}", "--account", "mute")),
    Row("key file open to others", 3, "OPEN_FILE", "chmod 600",
        command=("submit", "{job}", "--account", "open", "--password-file", "{password}")),
    Row("password file open to others", 3, "OPEN_FILE", "chmod 600",
        command=("submit", "{job}", "--account", "dev", "--password-file", "{open_password}")),
    Row("no such account", 3, "NO_ACCOUNT", "hearth wallet list", command=("submit", "{job}", "--account", "nobody")),
    Row("wrong chain id", 4, "WRONG_CHAIN", "hearth doctor", command=("submit", "{job}", "--network", "{other_chain}")),
    Row("wrong chain id at deployment", 4, "WRONG_CONTRACTS", "--network FILE",
        command=("submit", "{job}", "--network", "{other_deployment}")),
    Row("wrong contract code", 4, "WRONG_CONTRACTS", "--network",
        command=("submit", "{job}", "--network", "{other_code}")),
    Row("wrong protocol version", 3, "WRONG_VERSION", "hearth --version",
        command=("submit", "{job}", "--network", "{other_version}")),
    Row("unknown network", 3, "NO_NETWORK", "--network", command=("submit", "{job}", "--network", "nowhere")),
    Row("RPC down", 4, "RPC_UNAVAILABLE", "", command=("submit", "{job}", "--rpc", "http://127.0.0.1:9")),
    Row("store down", 9, "STORE_DOWN", "hearth doctor", command=("submit", "{job}"),
        environ={"HEARTH_STORE": "/ip4/127.0.0.1/tcp/9"}),
    Row("no container engine", 3, "NO_DOCKER", "hearth doctor", command=("run", "python:3", "--max-rate", "1.2/h"),
        environ={"DOCKER_HOST": "unix:///nonexistent/docker.sock"}),
    Row("corrupted input block", 9, "BLOCK_CORRUPT", "hearth doctor", command=("submit", "{corrupt_job}")),
    Row("stake short", 5, "STAKE_SHORT", "--stake",
        command=("worker", "register", "--config", "{idle_worker}", "--stake", "0.1")),
    Row("stake funds short", 6, "FUNDS_SHORT", "hearth wallet balance",
        command=("worker", "register", "--config", "{poor_worker}", "--account", "poor",
                 "--password-file", "{password}")),
    Row("stake of no amount", 2, "USAGE", "AMOUNT",
        command=("worker", "stake", "--config", "{running_worker}")),
    Row("operator that is no address", 2, "BAD_ADDRESS", "40 hex digits",
        command=("worker", "operator", "0x12", "--config", "{running_worker}")),
    Row("operator that nobody can be", 2, "BAD_ADDRESS", "hearth wallet list",
        command=("worker", "operator", "0x" + "00" * 20, "--config", "{running_worker}")),
    Row("operator named by a key that owns no node", 3, "NOT_OWNER", "--tx FILE",
        command=("worker", "operator", "0x" + "77" * 20, "--config", "{running_worker}", "--account", "dev")),
    Row("registered twice", 5, "REGISTERED", "hearth worker update",
        command=("worker", "register", "--config", "{running_worker}")),
    Row("registered with the home of another worker", 3, "HOME_IN_USE", "set another home in worker.toml",
        command=("worker", "register", "--config", "{lodger}")),
    Row("not the node's owner", 3, "NOT_OWNER", "use --account provider, or --print-tx",
        command=("worker", "price", "1/h", "--config", "{running_worker}", "--account", "dev")),
    Row("a bundle over a file that is there", 2, "FILE_EXISTS", "name another file with --out",
        command=("worker", "bundle", "--config", "{idle_worker}", "--out", "{idle_worker}")),
    Row("two workers on one key", 3, "KEY_IN_USE", "hearth wallet list",
        command=("worker", "start", "--config", "{second_worker}")),
    Row("a job taken by hand beside the worker that runs", 3, "KEY_IN_USE", "hearth worker drain",
        command=("worker", "take", "{open_job}", "--config", "{running_worker}")),
    Row("a job taken by hand without a node", 3, "NO_NODE", "hearth worker register",
        command=("worker", "take", "{open_job}", "--config", "{idle_worker}")),
    Row("a reload of a worker that does not run", 3, "NOT_RUNNING", "hearth worker start",
        command=("worker", "reload", "--config", "{idle_worker}")),
    Row("a reload of a keeper without a settings file", 3, "NO_CONFIG", "hearth keeper reload --config",
        command=("keeper", "reload")),
    Row("volumes of no size", 2, "USAGE", "--size 20GiB",
        command=("worker", "volumes", "--config", "{idle_worker}")),
    Row("volumes for nobody", 3, "VOLUME_FAILED", "--user NAME",
        command=("worker", "volumes", "--config", "{idle_worker}", "--size", "1GiB", "--user", "no-such-user")),
    Row("volumes that would be made while the worker runs", 3, "HOME_IN_USE", "hearth worker drain",
        command=("worker", "volumes", "--config", "{running_worker}", "--size", "1GiB", "--dry-run")),
    Row("worker settings whose RPC is dead", 4, "RPC_UNAVAILABLE", "mend rpc in worker.toml, then hearth worker doctor",
        command=("worker", "start", "--config", "{deaf_worker}")),
    *(Row(f"worker settings whose RPC is dead, {words[0]}", 4, "RPC_UNAVAILABLE",
          "mend rpc in worker.toml, then hearth worker doctor", command=("worker", *words, "--config", "{deaf_worker}"))
      for words in (("status",), ("earnings",), ("withdraw",), ("exit",), ("update",), ("price", "1/h"), ("stake", "1"),
                    ("why", "{open_job}"), ("take", "{open_job}"))),
    Row("a worker whose home is a plain file", 9, "FILE_REFUSED", "ls -ld",
        command=("worker", "start", "--config", "{flat_worker}")),
    Row("no worker settings", 3, "NO_CONFIG", "hearth worker init",
        command=("worker", "status", "--config", "{gone}")),
    *(Row(f"worker settings with faults, {name}", 3, "BAD_CONFIG", "then hearth worker doctor --config",
          command=("worker", name, "--config", "{bad_settings}")) for name in ("start", "doctor", "reload")),
    Row("keeper settings with faults", 3, "BAD_CONFIG", "then hearth keeper list --config",
        command=("keeper", "reload", "--config", "{bad_settings}")),
    Row("no keeper settings", 3, "NO_CONFIG", "docs/KEEPER.md",
        command=("keeper", "reload", "--config", "{gone}")),
    Row("a job file that is none", 2, "BAD_SPEC", "hearth init", command=("check", "{password}")),
    Row("results folder that exists", 9, "BAD_DESTINATION", "does not exist",
        command=("submit", "{job}", "--wait", "--results", "{full_folder}")),
    Row("results folder below a file", 9, "BAD_DESTINATION", "another path",
        command=("submit", "{job}", "--wait", "--results", "{password}/out")),
    Row("attesting a job without attesters", 5, "NOT_ATTESTED", "hearth job show",
        command=("job", "attest", "{open_job}")),
    Row("confirming a job without attesters", 5, "NOT_ATTESTED", "hearth job show",
        command=("job", "confirm", "{open_job}", "{job}", "--attesters", "{job}")),
    Row("confirming with nothing", 2, "USAGE", "hearth job confirm --help",
        command=("job", "confirm", "{open_job}", "--attesters", "{job}")),
    Row("results of a job that waits", 7, "NO_RESULT", "hearth job show", command=("job", "get", "{open_job}")),
    Row("cancel twice", 5, "NOTHING_TO_CANCEL", "hearth job show", command=("job", "cancel", "{cancelled_job}")),
    Row("id with a digit too many", 2, "BAD_ID", "hearth jobs --all", command=("job", "show", "{open_job}0")),
    Row("password of six letters", 3, "WEAK_PASSWORD", "--password-file",
        command=("wallet", "new", "weak", "--password-file", "{weak_password}")),
    Row("credit that does not suffice", 6, "FUNDS_SHORT", "hearth wallet balance",
        command=("submit", "{job}", "--use-credit", "--account", "poor", "--password-file", "{password}")),
    Row("no such job", 7, "NOT_FOUND", "hearth jobs --all", command=("job", "show", "0x" + "ab" * 32)),
    Row("a CAR file that is none", 9, "BAD_CAR", "hearth store export CID FILE",
        command=("store", "import", "{job}")),
    Row("a CAR file that is nowhere", 3, "NO_FILE", "ls -l", command=("store", "import", "{gone}")),
    Row("an export over a file that is there", 9, "BAD_DESTINATION", "does not exist",
        command=("store", "export", "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy", "{job}")),
    Row("an export of what is no CID", 9, "BAD_CID", "copy it again", command=("store", "export", "digits", "{gone}")),
    Row("no such prefix", 7, "NOT_FOUND", "hearth jobs --all", command=("job", "show", "0xabcdef")),
    Row("no id at all", 2, "BAD_ID", "hearth jobs --all", command=("job", "show", "digits")),
    Row("nothing to withdraw", 6, "NO_CREDIT", "hearth wallet balance",
        command=("wallet", "withdraw", "--account", "keeper", "999999999")),
    Row("status file of another program", 3, "BAD_STATUS", "hearth keeper status",
        command=("keeper", "status", "--config", "{odd_keeper}")),
    Row("withdraw to no address", 2, "BAD_ADDRESS", "hearth wallet list",
        command=("wallet", "withdraw", "1", "--account", "dev", "--to", "0x12")),
    Row("withdraw to an address with a wrong checksum", 2, "BAD_ADDRESS", "copy it again",
        command=("wallet", "withdraw", "--account", "dev", "--to", "0xFefEFEfEFeFEFEFefEFeFeFEfefEfEfeFEFeFEfE")),
    Row("send to the zero address", 2, "BAD_ADDRESS", "hearth wallet list",
        command=("wallet", "send", "0x" + "00" * 20, "1", "--account", "dev", "--yes")),
    Row("send without a word of consent", 3, "NOT_CONFIRMED", "--yes",
        command=("wallet", "send", "0x" + "fe" * 20, "1", "--account", "dev")),
    Row("parent that ended otherwise than asked", 2, "PARENT_ENDED", "hearth job show",
        command=("submit", "{job}", "--after", "{cancelled_job}")),
    Row("parent that ended otherwise than asked, checked", 2, "PARENT_ENDED", "hearth job show",
        command=("check", "{job}", "--after", "{cancelled_job}:success")),
    Row("parent that ended otherwise than asked, for another machine", 2, "PARENT_ENDED", "hearth job show",
        command=("submit", "{job}", "--print-tx", "--after", "{cancelled_job}")),
    Row("parent of the command line that is none", 7, "NOT_FOUND", "hearth jobs --all",
        command=("submit", "{job}", "--after", "0xabcdef")),
    Row("end of a parent that is none", 2, "USAGE", "JOB:failure",
        command=("submit", "{job}", "--after", "{open_job}:ok")),
    Row("top-up of a unit that nobody runs", 5, "UNIT_NOT_RUNNING", "hearth job show",
        command=("job", "top-up", "{open_job}", "--time", "5m")),
    Row("top-up by no time", 2, "BAD_DURATION", "--time 30m",
        command=("job", "top-up", "{open_job}", "--time", "0s")),
    Row("unlock of a job that waits for nothing", 5, "NOT_BLOCKED", "hearth job show",
        command=("job", "unlock", "{open_job}")),
    Row("unlock of a job whose parent has not ended", 5, "PARENT_RUNS", "hearth job wait",
        command=("job", "unlock", "{blocked_job}")),
    Row("change of nothing that there is", 2, "USAGE", "hearth gov queue --help",
        command=("gov", "queue", "fees", "1")),
    Row("change of a field that no policy has", 2, "BAD_CHANGE", "hearth gov queue --help",
        command=("gov", "queue", "policy", "fee=300")),
    Row("change of the version", 2, "BAD_CHANGE", "hearth gov queue --help",
        command=("gov", "queue", "policy", "version=2")),
    Row("change of a field named twice", 2, "BAD_CHANGE", "hearth gov queue --help",
        command=("gov", "queue", "policy", "fee_bps=300", "fee_bps=301")),
    Row("change of no field", 2, "BAD_CHANGE", "fee_bps=300", command=("gov", "queue", "policy")),
    Row("change to a share that is none", 2, "BAD_CHANGE", "fee_bps=500",
        command=("gov", "queue", "policy", "fee_bps=3%")),
    Row("change to a share of other digits", 2, "BAD_CHANGE", "fee_bps=500",
        command=("gov", "queue", "policy", "fee_bps=\u0663")),
    Row("change to a time without unit", 2, "BAD_DURATION", "90s", command=("gov", "queue", "policy", "ack_time=90")),
    Row("change to an amount of another asset", 2, "BAD_AMOUNT", "amounts are in ETH",
        command=("gov", "queue", "policy", "min_price=1 USDC")),
    Row("change to an amount of too many digits", 2, "BAD_CHANGE", "three digits",
        command=("gov", "queue", "policy", "min_price=0.0000012345")),
    Row("change to a time that no policy holds", 2, "BAD_CHANGE", "hearth net params",
        command=("gov", "queue", "policy", "ack_time=999d")),
    Row("change to a share that no policy holds", 2, "BAD_CHANGE", "has the bounds",
        command=("gov", "queue", "policy", "fee_bps=99999")),
    Row("change to what holds already", 2, "BAD_CHANGE", "hearth gov status",
        command=("gov", "queue", "policy", "fee_bps=500")),
    Row("change to a fee beyond its bound", 5, "OUT_OF_BOUNDS", "hearth net params",
        command=("gov", "queue", "policy", "fee_bps=1001")),
    Row("change to a stake below its bound", 5, "OUT_OF_BOUNDS", "hearth net params",
        command=("gov", "queue", "minimum-stake", "0.5")),
    Row("governor of nothing", 2, "BAD_CHANGE", "governor posts ADDRESS",
        command=("gov", "queue", "governor", "jobs", "0x12")),
    Row("governor that is no address", 2, "BAD_ADDRESS", "40 hex digits",
        command=("gov", "queue", "governor", "posts", "0x12")),
    Row("guardian that is a contract of the market", 2, "BAD_ADDRESS", "hearth net params",
        command=("gov", "queue", "guardian", "{steward}")),
    Row("council twice", 2, "BAD_CHANGE", "hearth gov queue --help",
        command=("gov", "queue", "council", "0x" + "77" * 20, "0x" + "78" * 20)),
    Row("change queued by another account", 3, "NOT_SEATED", "--print-tx",
        command=("gov", "queue", "minimum-stake", "2", "--account", "dev")),
    Row("pause by another account", 3, "NOT_SEATED", "--print-tx",
        command=("gov", "pause", "posts", "--account", "dev")),
    Row("pause without a word of consent", 3, "NOT_CONFIRMED", "--yes",
        command=("gov", "pause", "posts", "--account", "council")),
    Row("pause of nothing", 2, "USAGE", "hearth gov pause posts", command=("gov", "pause")),
    Row("pause of what cannot be paused", 2, "USAGE", "hearth gov pause posts", command=("gov", "pause", "claims")),
    Row("change that is no id", 2, "BAD_ID", "hearth gov status", command=("gov", "drop", "0xzz")),
    Row("change of one digit, executed", 2, "BAD_ID", "hearth gov status", command=("gov", "execute", "9")),
    Row("change of three digits, dropped", 2, "BAD_ID", "hearth gov status", command=("gov", "drop", "0x123")),
    Row("change that nobody queued", 7, "NOT_FOUND", "hearth gov status", command=("gov", "execute", "0x1234")),
    Row("change that nobody queued, whole", 7, "NOT_FOUND", "hearth gov status",
        command=("gov", "drop", "0x" + "12" * 32)),
    Row("seat that nobody was offered", 3, "NOT_SEATED", "hearth gov status", command=("gov", "accept", "council")),
    Row("rights that nobody offered", 5, "REFUSED", "hearth net events", command=("gov", "accept", "posts")),
    Row("print and wait", 2, "USAGE", "hearth job wait", command=("submit", "{job}", "--print-tx", "--wait")),
)  # fmt: skip

RAN_ROWS = (
    Ran("trap", "trap", ("trap",)),
    # Of a shorter run a loaded machine may lack so much that it gives it back.
    Ran("out of fuel", "loop", ("out_of_fuel", "timeout")),
    Ran("out of memory", "hungry", ("oom",)),
    Ran("endless loop", "loop", ("timeout",), ((_PRICE, 'price: {max_rate: "1.20/h", billing: fixed}'),)),
    Ran("required output missing", "good", ("output_missing",), (("/out, required: false", "/out/x, required: true"),)),
    Ran("output over its cap", "writer", ("output_over_cap",), (("max_size: 1MiB", "max_size: 1B"),)),
)  # fmt: skip
