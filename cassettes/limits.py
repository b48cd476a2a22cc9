"""Every limit, in one place (SECURITY B-11). Over one: TooLarge, within a second, without the memory it claimed."""

BODY_IN_MEMORY_BYTES = 8 * 1024 * 1024
"""A body up to this size is held in memory and redacted whole when it ends; a larger one as it streams."""

HEAD_BYTES = 256 * 1024
"""All fields of one head. nginx takes 32 KiB, Node 16 KiB, h11 and Go 1 MiB by default; T-C10 sends 80 KiB."""

FIELD_COUNT = 4096

NAME_BYTES = 128
"""A cassette's name."""

RECORD_BYTES = 64 * 1024 * 1024
"""One framed record, decompressed."""

MSGPACK_DEPTH = 32

JSON_DEPTH = 200
"""Deeper JSON is matched as opaque bytes."""

DECODED_BYTES = 64 * 1024 * 1024
"""A body with a content encoding, decoded."""

DECODED_RATIO = 1000
"""Decoded size over encoded size, checked once 1 MiB has been decoded; gzip's own maximum is 1,032."""

CONTENT_CODINGS = 2
"""Stacked content encodings that are undone."""

PIECES = 1_000_000
"""Boundaries kept per body; later pieces are joined to the last."""

EXCHANGES = 10_000_000

JSON_ITEMS = 1_000_000
"""Members or elements of one body looked at one by one when some are taken out."""

JSON_PLACES = 10_000
"""Model-bearing places in one request; agents have fewer than ten."""

FRAME_DICTIONARY_BYTES = 128 * 1024
"""How much of an earlier record or body serves as a dictionary for a later one."""

OBJECT_BYTES = 256 * 1024
"""A body from this size on that does not compress becomes a file of its own, named by its digest."""

COMPRESSES_BELOW = 0.9
"""Compressed over plain size of a sample; above, a body is kept as it is."""

BLOCK_BYTES = 1024 * 1024
"""A large compressed body is cut into blocks of this size, so that any part of it can be read without the rest."""

DECODE_COST_US = 2_000
"""Estimated cost of reading a body of a strand, its digest included; where it would cost more, a new strand begins."""

DELTA_BODY_BYTES = 4 * 1024 * 1024
"""A body up to this size can be kept as ranges of earlier ones, or be such an earlier one."""

STRAND_RANGES = 4096
"""Ranges one body is made of; an agent's turn adds two or three."""

STRAND_WINDOW_LOG = 20
"""How far back a strand's compression looks: 2 to this power bytes."""

DELTA_MEMORY_BYTES = 48 * 1024 * 1024
"""What a recording holds of recent bodies to find bases among."""

EXPORT_MEMBERS = 1_000_000
"""Entries of an exported file."""

META_BYTES = 1024 * 1024
"""What a recording says about itself, packed."""

SSE_EVENT_BYTES = 16 * 1024 * 1024
"""One server-sent event, one line of JSON lines, one element of a streamed array."""

EVENTSTREAM_HEADER_BYTES = 128 * 1024
EVENTSTREAM_PAYLOAD_BYTES = 24 * 1024 * 1024
"""One message of an AWS event stream; what botocore enforces."""

ANSWER_BYTES = 64 * 1024 * 1024
"""A model's answer, decoded, read into values; the rest of a longer one is not read, and the answer says so."""

INDEX_BYTES = 256 * 1024 * 1024
"""An index file; about 200 bytes an exchange. A longer one is not read: the journal is walked instead."""

LEARNED_VALUES = 128
"""Credentials seen on the wire that are looked for everywhere, newest first; those of the environment are not counted.
Each costs about ten searches of every text, and session cookies come new with each connection.
"""

REDACTIONS = 100_000
"""Ranges listed per exchange; all are redacted, further ones are only counted."""

SOCKET_MESSAGE_BYTES = 16 * 1024 * 1024
"""One WebSocket message, its fragments joined. A direction with a longer one is kept as bytes from there on."""

MCP_LINE_BYTES = 64 * 1024 * 1024
"""One message of an MCP server on standard input or output; a longer one is passed on while recording, and not kept."""

SOCKET_MESSAGES = 200_000
"""Messages listed of one upgraded exchange; a turn of a model's socket has a few hundred. Later ones are not kept."""

ENVELOPE_BYTES = 4 * 1024 * 1024
"""An envelope; one of a large agent has about 20 KB, most of it digests of tools."""

TREE_ENTRIES = 1_000_000
"""Entries of one workspace's tree."""

TREE_PATH_BYTES = 4096
"""A path inside a workspace, and what a link says; Linux takes no longer one."""

PATCH_BYTES = 4 * 1024 * 1024
"""A file up to this size is compared line by line in a patch."""

ARTIFACT_BYTES = 512 * 1024 * 1024
"""A tree, a file of a workspace, a repository's objects: held in memory when asked for."""

ARTIFACT_KIND_BYTES = 64
"""The name of an artifact's kind."""

EXECS = 200_000
"""Commands kept of one run; later ones are counted only. A large build executes tens of thousands."""

EXEC_ARGUMENTS = 131_072
"""Arguments kept of one command; the kernel's own bound is 2 MiB for arguments and environment together."""

EXEC_LOG_BYTES = 64 * 1024 * 1024
"""What is kept of all commands' arguments of one run; from there on, they are cut to the program's name."""

EXEC_TRACE_BYTES = 1024 * 1024 * 1024
"""How much of a tracer's log is read; what stands after it is not."""

EXEC_TRACE_LINE_BYTES = 16 * 1024 * 1024
"""One line of a tracer's log: 2 MiB of arguments, each byte escaped as four, and room."""
