"""UnixFS v1: files and directories to blocks and back, with constants fixed once for the whole market.

The same bytes give the same CID everywhere: raw leaves of CHUNK_BYTES, balanced layout of LINKS_PER_NODE, CIDv1,
sha2-256, directories sharded above DIRECTORY_BLOCK_BYTES. That is the profile `unixfs-v1-2025` of IPIP-499. Reading
takes what other tools write too: dag-pb leaves, inline data, shards of another fanout.

Whoever gives blocks (`BlockSource`) has checked them against their CIDs. Nothing else in them is trusted: sizes,
names, counts and depth are checked here, against the node itself and against the reader's `ReadLimits`.

Sources: https://specs.ipfs.tech/unixfs/ and https://ipld.io/specs/codecs/dag-pb/spec/.
"""

from hearth.storage.unixfs.codec import DagNode, Link, decode_dag_node, encode_dag_node
from hearth.storage.unixfs.exporter import PART_PREFIX, check_destination, export
from hearth.storage.unixfs.importer import import_file, import_path, name_path
from hearth.storage.unixfs.model import (
    CHUNK_BYTES,
    DEFAULT_LIMITS,
    DIRECTORY_BLOCK_BYTES,
    LINKS_PER_NODE,
    MAX_DAG_HEIGHT,
    MAX_NAME_BYTES,
    MAX_PATH_BYTES,
    MAX_PATH_DEPTH,
    SHARD_FANOUT,
    BlockSink,
    BlockSource,
    Entry,
    Ignore,
    Progress,
    ReadLimits,
    Renamed,
)
from hearth.storage.unixfs.names import check_name, disarmed
from hearth.storage.unixfs.reader import blocks_of, count_entries, declared_size, links_of, read_file, resolve, walk
from hearth.storage.unixfs.sharding import encode_directory, hash_name, put_directory

__all__ = [
    "CHUNK_BYTES",
    "DEFAULT_LIMITS",
    "DIRECTORY_BLOCK_BYTES",
    "LINKS_PER_NODE",
    "MAX_DAG_HEIGHT",
    "MAX_NAME_BYTES",
    "MAX_PATH_BYTES",
    "MAX_PATH_DEPTH",
    "PART_PREFIX",
    "SHARD_FANOUT",
    "BlockSink",
    "BlockSource",
    "DagNode",
    "Entry",
    "Ignore",
    "Link",
    "Progress",
    "ReadLimits",
    "Renamed",
    "blocks_of",
    "check_destination",
    "check_name",
    "count_entries",
    "declared_size",
    "decode_dag_node",
    "disarmed",
    "encode_dag_node",
    "encode_directory",
    "export",
    "hash_name",
    "import_file",
    "import_path",
    "links_of",
    "name_path",
    "put_directory",
    "read_file",
    "resolve",
    "walk",
]
