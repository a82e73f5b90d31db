"""UnixFS v1: files and directories to blocks and back, with constants fixed once for the whole market.

The same bytes give the same CID everywhere: raw leaves of CHUNK_BYTES, balanced layout of LINKS_PER_NODE, CIDv1,
sha2-256, plain directories. That equals `ipfs add --cid-version 1 --raw-leaves --chunker size-1048576
--max-file-links 1024`. Reading takes what other tools write too: dag-pb leaves, inline data, sharded directories.

Whoever gives blocks (`BlockSource`) has checked them against their CIDs. Nothing else in them is trusted: sizes,
names, counts and depth are checked here, against the node itself and against the reader's `ReadLimits`.

Sources: https://specs.ipfs.tech/unixfs/ and https://ipld.io/specs/codecs/dag-pb/spec/.
"""

from hearth.storage.unixfs.codec import DagNode, Link, decode_dag_node, encode_dag_node
from hearth.storage.unixfs.exporter import PART_PREFIX, check_destination, export
from hearth.storage.unixfs.importer import encode_directory, import_file, import_path, name_path
from hearth.storage.unixfs.model import (
    CHUNK_BYTES,
    DEFAULT_LIMITS,
    DIRECTORY_BLOCK_BYTES,
    LINKS_PER_NODE,
    MAX_DAG_HEIGHT,
    MAX_NAME_BYTES,
    MAX_PATH_BYTES,
    MAX_PATH_DEPTH,
    BlockSink,
    BlockSource,
    Entry,
    Ignore,
    Progress,
    ReadLimits,
)
from hearth.storage.unixfs.names import check_name
from hearth.storage.unixfs.reader import blocks_of, count_entries, declared_size, links_of, read_file, resolve, walk

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
    "BlockSink",
    "BlockSource",
    "DagNode",
    "Entry",
    "Ignore",
    "Link",
    "Progress",
    "ReadLimits",
    "blocks_of",
    "check_destination",
    "check_name",
    "count_entries",
    "declared_size",
    "decode_dag_node",
    "encode_dag_node",
    "encode_directory",
    "export",
    "import_file",
    "import_path",
    "links_of",
    "name_path",
    "read_file",
    "resolve",
    "walk",
]
