"""The isolated Oak reader: what the commit that HEAD names contains, from `.oak/oak.db`, believing nothing.

Run as `python -I reader/oak_sqlite_reader.py REPO [DEST] ...`; docs/reader-report.md has options, exit
statuses and the report. Standard library only: its neighbours (`scoped_read`, `oak_format`,
`oak_database`, `pureblake3`, `purezstd`) are loaded by file, and only `--backend native` imports the
blake3 and zstandard packages. Oak is never run.

Every object is re-hashed: the commit that HEAD names, the trees on the way, the blobs in scope, chunks.
What a mismatch means goes by kind (commit, tree, blob): where another object of the kind verifies, the
store is of the recognised format and holds something wrong (3); where none does, the format is not
recognised (77).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import io
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if sys.version_info < (3, 11):  # noqa: UP036 - the operator picks the interpreter
    # Nothing here can be loaded by such an interpreter; say it in the form that a driver expects.
    sys.stdout.write(
        '{"report":"oakledger-reader-report/1","reader":"oak_sqlite_reader","vcs":"oak","outcome":"unmeasured",'
        '"exit_status":77,"reason":"instrument_missing","detail":"the reader needs Python 3.11 or newer"}\n'
    )
    sys.stderr.write("oak_sqlite_reader: instrument_missing: the reader needs Python 3.11 or newer\n")
    sys.exit(77)

_HERE = os.path.dirname(os.path.realpath(__file__))


def _load(name: str) -> Any:
    """A neighbouring module: by file when this runs as an isolated script, as part of the package
    otherwise.
    """
    if __package__:
        return importlib.import_module(f"{__package__}.{name}")
    path = os.path.join(_HERE, f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"_oakledger_{name}", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from reader import oak_database, oak_format
    from reader import scoped_read as core
else:
    core = _load("scoped_read")
    oak_format = _load("oak_format")
    oak_database = _load("oak_database")

VERSION = "1"

NEWEST_MIGRATION = "0014_change_captures"
MIGRATIONS = (
    "0000_baseline",
    "0001_relax_branch_fks_and_message",
    "0002_relax_commits_parent_hash_fk",
    "0003_stat_cache",
    "0004_stat_cache_ctime",
    "0005_merge_parent_index",
    "0006_drop_redundant_tree_entries_index",
    "0007_blobs_codec",
    "0008_trees_content",
    "0009_relax_blob_chunks_fk",
    "0010_branch_close_reason",
    "0011_serve_mapping_proofs",
    "0012_pending_branch_description",
    "0013_branch_description_generation",
    NEWEST_MIGRATION,
)
"""The migrations of the pinned format; all must have succeeded and no later one may be there."""

MAX_MIGRATION_ROWS = 1000
MAX_PARENT_HOPS = 128
"""Most steps from a branch without commits to its parent branch, as in Oak's inspector."""

SAMPLE = 64
"""How many other objects of a kind are tried before the format is called unrecognised."""

_BATCH_BYTES = 1 << 20
_BATCH_ITEMS = 1024
_GROUP_BYTES = 16 << 20
_STORED_MARGIN = 1 << 20
_SPARE_ENTRIES = 1_000_000
"""A tree over `--max-entries` is still looked through for path facts, unless it is larger than this on
top.
"""


# --- Codecs ---------------------------------------------------------------------------------------


class Codec(NamedTuple):
    """BLAKE3 and zstd, own or native, and what identifies them.

    `decompress(data, limit)` decodes all frames; raises `oak_format.Malformed`, `OutputLimit` (more than
    `limit` bytes) or `Unsupported`.
    """

    digest_many: Callable[[Sequence[bytes]], Sequence[bytes]]
    decompress: Callable[[bytes, int], bytes]
    files: Mapping[str, str]
    dependencies: dict[str, str]


def _pure_codec(budget: core.Budget) -> Codec:
    blake3, zstd = _load("pureblake3"), _load("purezstd")

    def decompress(data: bytes, limit: int) -> bytes:
        try:
            content: bytes = zstd.decompress(
                data,
                max_output_size=limit,
                max_window_size=oak_format.ZSTD_MAX_WINDOW,
                deadline=time.monotonic() + budget.remaining_ns() / 1e9,
            )
        except zstd.ZstdOutputLimitError as error:
            raise oak_format.OutputLimit(str(error)) from None
        except zstd.ZstdDeadlineError:
            raise budget.deadline_stop() from None
        except zstd.ZstdLimitError as error:
            raise oak_format.Unsupported(str(error)) from None
        except zstd.ZstdError as error:
            raise oak_format.Malformed(str(error)) from None
        return content

    files = {name: os.path.join(_HERE, name) for name in ("pureblake3.py", "purezstd.py")}
    return Codec(blake3.digest_many, decompress, files, {})


def _native_codec() -> Codec:
    try:
        blake3, zstandard = importlib.import_module("blake3"), importlib.import_module("zstandard")
    except ImportError as error:
        raise core.Stop("instrument_missing", f"backend native needs the package {error.name}") from None

    def digest_many(items: Sequence[bytes]) -> list[bytes]:
        return [blake3.blake3(item).digest() for item in items]

    def decompress(data: bytes, limit: int) -> bytes:
        # The library reads cut-off data without complaint, so the frames are counted out first.
        oak_format.check_frames(data)
        decoder = zstandard.ZstdDecompressor(max_window_size=oak_format.ZSTD_MAX_WINDOW)
        try:
            with decoder.stream_reader(io.BytesIO(data), read_across_frames=True) as stream:
                content: bytes = stream.read(limit + 1)
        except zstandard.ZstdError as error:
            raise oak_format.Malformed(f"zstd: {error}") from None
        if len(content) > limit:
            raise oak_format.OutputLimit("zstd output is too long")
        return content

    files: dict[str, str] = {}
    versions: dict[str, str] = {}
    for module in (blake3, zstandard):
        name = module.__name__
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "unknown"
        directory = os.path.dirname(module.__file__ or "")
        for file in os.listdir(directory):
            if file.endswith((".py", ".so", ".pyd", ".dylib")):
                files[f"{name}/{file}"] = os.path.join(directory, file)
    return Codec(digest_many, decompress, files, versions)


# --- Findings that depend on the rest of the store ------------------------------------------------


class Mismatch(core.Stop):
    """An object that does not verify. What that means is decided by kind, once it is known what else
    verifies.
    """

    def __init__(self, kind: str, object_id: str, detail: str, *, reason: str | None = None) -> None:
        super().__init__(reason or f"{kind}_mismatch", f"{kind} {object_id[:12]}: {detail}")
        self.kind = kind
        self.object_id = object_id


def _bad_chunk(chunk: str, detail: str) -> Mismatch:
    """A chunk that does not verify: chunks and blobs share one hash convention, so the kind is blob."""
    return Mismatch("blob", chunk, f"as a chunk: {detail}", reason="chunk_mismatch")


class Absent(core.Stop):
    """An object that the store lacks. What explains it is looked up when it decides the read."""

    def __init__(self, kind: str, object_id: str, *, invalid: bool) -> None:
        detail = f"{kind} {object_id[:12]} is not in the store"
        super().__init__("content_absent", detail, exit_status=3 if invalid else None)
        self.kind = kind
        self.object_id = object_id


class _BlobRow(NamedTuple):
    """What the database says about one wanted blob, before its content is read."""

    storage: str
    """`row`, `chunks` (no row, or a placeholder), `absent`."""
    size: int | None = None
    """Size in the row, or of the mapped chunks; bytes."""
    codec: int = 0
    stored: int = 0
    problem: core.Stop | None = None
    placeholder: bool = False


class _Chunk(NamedTuple):
    """One row of a blob's chunk map."""

    number: int
    offset: int
    size: int
    chunk: str


class _CommitRow(NamedTuple):
    """A row of `commits`: the fields, or what keeps them from being a commit that reproduces its hash."""

    object_id: str
    commit: oak_format.Commit | None
    branch_name: bytes | None
    manifest: str | None
    refusal: str | None
    is_mistyped: bool
    length: int


_COMMIT_COLUMNS = (
    "hash",
    "branch_name",
    "parent_hash",
    "merge_parent_hash",
    "manifest_hash",
    "author",
    "message",
    "timestamp",
)
_COMMIT_SELECT = ",".join(f'typeof("{column}"),"{column}"' for column in _COMMIT_COLUMNS)


class OakStore:
    """The verified objects of one opened database (`scoped_read.Store`)."""

    def __init__(
        self,
        db: oak_database.Database,
        codec: Codec,
        options: core.Options,
        report: core.Report,
        budget: core.Budget,
    ) -> None:
        self.db = db
        self.codec = codec
        self.options = options
        self.report = report
        self.budget = budget
        self.head = ""
        self.history = _History(self)
        self.root_id = ""
        self._root: Sequence[core.TreeEntry] | None = None
        self._blobs: dict[str, _BlobRow] = {}
        self._kinds_verified = {"commit": 0, "tree": 0, "blob": 0}
        self._samples: dict[str, list[str]] = {}
        self._sample_results: dict[tuple[str, str], bool] = {}
        self._sampling = False
        self._lists: dict[str, list[bytes]] = {}
        self._deep_chunks: dict[str, tuple[int, set[str]]] = {}
        self._deep_maps: dict[str, list[_Chunk]] | None = None
        self._deep_findings: list[core.Stop] = []
        self._deep_reassemble: list[str] = []
        self._tree_storage: set[str] = set()

    # --- Accounts ---

    def verified(self, kind: str, how: str, size: int = 1) -> None:
        """Note one verified object; empty ones say nothing about the hash convention."""
        if self._sampling:
            return
        self.report.count(how)
        if size:
            self._kinds_verified[kind] += 1

    def charge(self, size: int) -> None:
        """Count decoded bytes, unless this is only a sample: that counts towards the deadline alone."""
        if self._sampling:
            self.budget.check()
        else:
            self.budget.charge(size)

    def _limit(self) -> int:
        most = self.budget.bounds.max_object_bytes
        return most if self._sampling else min(most, self.budget.remaining_bytes())

    def _over(self, what: str) -> core.Stop:
        """The bound that an output of more than `_limit()` bytes has met."""
        if self._limit() == self.budget.bounds.max_object_bytes:
            return self.budget.object_stop(what)
        return self.budget.total_stop()

    def _has(self, table: str) -> bool:
        return table in self.db.tables

    # --- Trees ---

    def _stored_trees(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes | core.Stop]]:
        """Canonical bytes of trees, not yet hashed; a doubled row comes as a second result."""
        most = self.budget.bounds.max_object_bytes + _STORED_MARGIN
        seen: set[str] = set()
        legacy: list[str] = []
        select = (
            "hash, typeof(content), CASE WHEN typeof(content)='blob' THEN length(content) END,"
            f" CASE WHEN typeof(content)='blob' AND length(content)<={most} THEN content END"
        )
        for key, kind, length, content in self.db.by_keys(select, "trees", "hash", ids):
            self.budget.check()
            tree = key.decode("ascii")
            if tree in seen:
                yield tree, Mismatch("tree", tree, "two rows have this key")
                continue
            seen.add(tree)
            if kind == b"null":
                legacy.append(tree)
            elif kind != b"blob":
                yield tree, Mismatch("tree", tree, "the content is of the wrong storage class")
            elif length > most:
                yield tree, self.budget.object_stop(f"tree {tree[:12]}")
            else:
                yield tree, self._inflate_tree(tree, content)
        yield from self._legacy_trees(legacy)
        for tree in ids:
            if tree not in seen:
                yield tree, b"" if tree == oak_format.EMPTY_HASH else self._absent("tree", tree)

    def _inflate_tree(self, tree: str, content: bytes) -> bytes | core.Stop:
        try:
            data = self.codec.decompress(content, self._limit())
        except oak_format.Malformed as error:
            return Mismatch("tree", tree, str(error))
        except oak_format.Unsupported as error:
            return core.Stop("unsupported_format", f"tree {tree[:12]}: {error}")
        except oak_format.OutputLimit:
            stop = self._over(f"tree {tree[:12]}")
            if stop.reason == "bound_total_bytes":
                raise stop from None
            return stop
        self._tree_storage.add("content")
        self.charge(len(data))
        return data

    def _legacy_trees(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes | core.Stop]]:
        """Trees whose bytes must be put together from `tree_entries`.

        Rows of many trees come interleaved from one scan; when they are too many to hold, the scan is
        done again for half of the trees.
        """
        groups = [list(ids[start : start + 2000]) for start in range(0, len(ids), 2000)] if ids else []
        groups.reverse()
        most = self.budget.bounds.max_object_bytes
        while groups:
            group = groups.pop()
            rows: dict[str, list[tuple[bytes, bytes, bytes, bytes]]] = {tree: [] for tree in group}
            lengths = dict.fromkeys(group, -1)
            problems: dict[str, core.Stop] = {}
            held = 0
            select = (
                "tree_hash, typeof(name)||typeof(kind)||typeof(hash)||typeof(mode), name, kind, hash, mode"
            )
            found = (
                self.db.by_keys(select, "tree_entries", "tree_hash", group)
                if self._has("tree_entries")
                else ()
            )
            for key, classes, name, kind, object_id, mode in found:
                self.budget.check()
                tree = key.decode("ascii")
                if tree in problems:
                    continue
                if classes != b"text" * 4:
                    problems[tree] = Mismatch("tree", tree, "an entry is of the wrong storage class")
                    continue
                mode = b"tree" if kind == b"tree" else mode
                length = len(name) + len(kind) + len(object_id) + len(mode) + 4
                lengths[tree] += length
                held += length
                if lengths[tree] > most:
                    problems[tree] = self.budget.object_stop(f"tree {tree[:12]}")
                elif held > max(most, _GROUP_BYTES) and len(group) > 1:
                    break
                else:
                    rows[tree].append((name, kind, object_id, mode))
            else:
                yield from self._joined_trees(rows, problems)
                continue
            middle = len(group) // 2
            groups += [group[middle:], group[:middle]]

    def _joined_trees(
        self, rows: Mapping[str, list[tuple[bytes, bytes, bytes, bytes]]], problems: Mapping[str, core.Stop]
    ) -> Iterator[tuple[str, bytes | core.Stop]]:
        for tree, some in rows.items():
            if tree in problems:
                yield tree, problems[tree]
            elif not some:
                yield tree, b"" if tree == oak_format.EMPTY_HASH else self._absent("tree", tree)
            else:
                data = oak_format.join_tree(some)
                some.clear()
                self._tree_storage.add("entries")
                self.charge(len(data))
                yield tree, data

    def read_trees(self, ids: Sequence[str]) -> Iterator[tuple[str, Sequence[core.TreeEntry] | core.Stop]]:
        """Trees, re-hashed and strictly parsed (`scoped_read.Store`)."""
        ids = list(ids)
        if self._root is not None and self.root_id in ids:
            ids.remove(self.root_id)
            yield self.root_id, self._root
        held: list[tuple[str, bytes]] = []
        size = 0
        for tree, data in self._stored_trees(ids):
            if isinstance(data, core.Stop):
                yield tree, data
                continue
            held.append((tree, data))
            size += len(data)
            if size >= _BATCH_BYTES or len(held) >= _BATCH_ITEMS:
                yield from self._check_trees(held)
                held, size = [], 0
        yield from self._check_trees(held)

    def _check_trees(
        self, held: Sequence[tuple[str, bytes]]
    ) -> Iterator[tuple[str, Sequence[core.TreeEntry] | core.Stop]]:
        if not held:
            return
        digests = self.codec.digest_many([data for _, data in held])
        for (tree, data), digest in zip(held, digests, strict=True):
            self.budget.check()
            if digest.hex() != tree:
                yield tree, Mismatch("tree", tree, "the content does not have this hash")
                continue
            if data.count(b"\n") > self.budget.bounds.max_entries + _SPARE_ENTRIES:
                detail = f"tree {tree[:12]} has too many entries; raise --max-entries"
                yield tree, core.Stop("bound_entries", detail)
                continue
            try:
                entries: list[core.TreeEntry] = oak_format.parse_tree(data, core.TreeEntry)
            except oak_format.Malformed as error:
                yield tree, Mismatch("tree", tree, str(error))
                continue
            self.verified("tree", "trees", len(data))
            yield tree, entries

    def open_root(self, root_id: str) -> None:
        """Verify the root tree and keep it. Raises what its failure amounts to."""
        before = self._kinds_verified["tree"]
        self.budget.soft = True  # Facts about paths come before bounds, and all of them need the root tree.
        try:
            results = list(self.read_trees([root_id]))
        finally:
            self.budget.soft = False
        for _, result in results:
            if isinstance(result, core.Stop):
                self._kinds_verified["tree"] = before  # One of two rows with this key is no other tree.
                raise self.judge(result.at([b""]))
        if len(results) != 1:
            raise core.Stop("instrument_failed", "the root tree was read twice")
        self.root_id = root_id
        self._root = results[0][1]  # type: ignore[assignment]

    def tree_verifies(self, tree: str) -> bool:
        """Whether this tree alone verifies; counts towards no bound but the deadline."""
        return self._sample_verifies("tree", tree)

    # --- Blobs ---

    def blob_sizes(self, ids: Sequence[str]) -> Mapping[str, int | None]:
        """Claimed sizes from rows or chunk maps, nothing decoded (`scoped_read.Store`)."""
        rows: dict[str, _BlobRow] = {}
        select = (
            "hash, typeof(size), size, typeof(codec), codec, typeof(content),"
            " CASE WHEN typeof(content)='blob' THEN length(content) END"
        )
        for key, size_class, size, codec_class, codec, content_class, stored in self.db.by_keys(
            select, "blobs", "hash", ids
        ):
            self.budget.check()
            blob = key.decode("ascii")
            if blob in rows:
                rows[blob] = _BlobRow("row", problem=Mismatch("blob", blob, "two rows have this key"))
            elif (size_class, codec_class, content_class) != (b"integer", b"integer", b"blob"):
                mistyped = Mismatch("blob", blob, "a value is of the wrong storage class")
                rows[blob] = _BlobRow("row", problem=mistyped)
            elif size > 0 and not stored and codec == 0:
                rows[blob] = _BlobRow("chunks", size, placeholder=True)
            else:
                problem = self._row_problem(blob, size, codec, stored)
                rows[blob] = _BlobRow("row", size, codec, stored, problem)
        rest = [blob for blob in ids if blob not in rows or rows[blob].placeholder]
        mapped = self._mapped_sizes(rest)
        for blob in rest:
            row = rows.get(blob)
            if blob in mapped:
                claimed = row.size if row else mapped[blob]
                rows[blob] = _BlobRow("chunks", claimed, placeholder=row is not None)
            elif blob == oak_format.EMPTY_HASH and row is None:
                rows[blob] = _BlobRow("row", 0)
            else:
                rows[blob] = _BlobRow("absent", row.size if row else None)
        self._blobs.update(rows)
        return {blob: row.size if row.size is None or row.size >= 0 else None for blob, row in rows.items()}

    def _row_problem(self, blob: str, size: int, codec: int, stored: int) -> core.Stop | None:
        if codec not in (0, 1):
            return core.Stop("unsupported_format", f"blob {blob[:12]} has an unknown codec")
        if size < 0 or (codec == 0 and stored != size):
            return self._wrong_size(blob)
        return None

    def _wrong_size(self, blob: str) -> core.Stop:
        return core.Stop("size_mismatch", f"blob {blob[:12]}: the size in its row is not that of its content")

    def _mapped_sizes(self, ids: Sequence[str]) -> dict[str, int | None]:
        """Sum of the chunk sizes of each blob that has a chunk map; None where the map is not well-formed."""
        sizes: dict[str, int | None] = {}
        if not ids or not self._has("blob_chunks"):
            return sizes
        select = "blob_hash, typeof(size), size"
        for key, size_class, size in self.db.by_keys(select, "blob_chunks", "blob_hash", ids):
            self.budget.check()
            blob = key.decode("ascii")
            before = sizes.get(blob, 0)
            good = size_class == b"integer" and size > 0 and before is not None
            sizes[blob] = before + size if good and before is not None else None
        return sizes

    def read_blobs(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes | core.Stop]]:
        """Blobs, re-hashed (`scoped_read.Store`)."""
        unknown = [blob for blob in ids if blob not in self._blobs]
        if unknown:
            self.blob_sizes(unknown)
        most = self.budget.bounds.max_object_bytes
        whole: list[str] = []
        chunked: list[str] = []
        for blob in ids:
            row = self._blobs[blob]
            if row.problem is not None:
                yield blob, row.problem
            elif row.storage == "absent":
                yield blob, self._absent("blob", blob)
            elif row.storage == "chunks":
                chunked.append(blob)
            elif row.size == 0 and row.stored == 0 and row.codec == 0 and blob == oak_format.EMPTY_HASH:
                self.verified("blob", "blobs", 0)
                yield blob, b""
            elif (row.size or 0) > most or row.stored > most + _STORED_MARGIN:
                yield blob, self.budget.object_stop(f"blob {blob[:12]}")
            else:
                whole.append(blob)
        if self.options.bounds.deep and not self._sampling:
            self._deep_maps = self._maps(whole)
        yield from self._whole_blobs(whole)
        yield from self._chunked_blobs(chunked)

    def _whole_blobs(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes | core.Stop]]:
        held: list[tuple[str, bytes]] = []
        size = 0
        for key, content in self.db.by_keys("hash, content", "blobs", "hash", ids):
            blob = key.decode("ascii")
            data = self._inflate_blob(blob, content)
            if isinstance(data, core.Stop):
                yield blob, data
                continue
            held.append((blob, data))
            size += len(data)
            if size >= _BATCH_BYTES or len(held) >= _BATCH_ITEMS:
                yield from self._check_blobs(held)
                held, size = [], 0
        yield from self._check_blobs(held)

    def _inflate_blob(self, blob: str, content: bytes) -> bytes | core.Stop:
        row = self._blobs[blob]
        what = f"blob {blob[:12]}"
        expected = row.size or 0
        if row.codec == 0:
            data = content
        else:
            try:
                data = self.codec.decompress(content, min(expected, self._limit()))
            except oak_format.Malformed as error:
                return Mismatch("blob", blob, str(error))
            except oak_format.Unsupported as error:
                return core.Stop("unsupported_format", f"blob {blob[:12]}: {error}")
            except oak_format.OutputLimit:
                # Longer than its row says is a wrong size; only a bound below that is a bound.
                return self._wrong_size(blob) if expected <= self._limit() else self._over(what)
        if len(data) != expected:
            return self._wrong_size(blob)
        self.charge(len(data))
        return data

    def _check_blobs(self, held: Sequence[tuple[str, bytes]]) -> Iterator[tuple[str, bytes | core.Stop]]:
        if not held:
            return
        digests = self.codec.digest_many([data for _, data in held])
        for (blob, data), digest in zip(held, digests, strict=True):
            self.budget.check()
            if digest.hex() != blob:
                yield blob, Mismatch("blob", blob, "the content does not have this hash")
                continue
            self.verified("blob", "blobs", len(data))
            if self._deep_maps and blob in self._deep_maps:
                self._cross_check(blob, data, self._deep_maps[blob])
            yield blob, data

    # --- Chunks ---

    def _maps(self, ids: Sequence[str]) -> dict[str, list[_Chunk]]:
        """The chunk maps of blobs, each in order of index; a row of the wrong storage class has index -1."""
        maps: dict[str, list[_Chunk]] = {}
        if not ids or not self._has("blob_chunks"):
            return maps
        select = (
            'blob_hash, typeof(chunk_index)||typeof("offset")||typeof(size)||typeof(chunk_hash),'
            ' chunk_index, "offset", size, chunk_hash'
        )
        limit = self.budget.bounds.max_entries
        for count, row in enumerate(self.db.by_keys(select, "blob_chunks", "blob_hash", ids), 1):
            self.budget.check()
            if count > limit:
                raise core.Stop("bound_entries", f"chunk maps of more than {limit} rows; raise --max-entries")
            key, classes, number, offset, size, chunk = row
            mapped = _Chunk(-1, 0, 0, "")
            if classes == b"integer" * 3 + b"text":
                with contextlib.suppress(oak_format.Malformed):
                    mapped = _Chunk(number, offset, size, oak_format.parse_hash(chunk))
            maps.setdefault(key.decode("ascii"), []).append(mapped)
        for rows in maps.values():
            rows.sort()
        return maps

    @staticmethod
    def _is_contiguous(rows: Sequence[_Chunk]) -> bool:
        end = 0
        for number, row in enumerate(rows):
            if row.number != number or row.offset != end or row.size <= 0:
                return False
            end += row.size
        return True

    def _broken_map(self, blob: str) -> core.Stop:
        return core.Stop("chunk_mismatch", f"blob {blob[:12]}: its chunk map is not contiguous from 0")

    def _chunked_blobs(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes | core.Stop]]:
        """Blobs that exist as chunks only, in groups that fit into memory together."""
        group: list[str] = []
        size = 0
        for blob in ids:
            claimed = self._blobs[blob].size or 0
            if group and (size + claimed > _GROUP_BYTES or len(group) >= _BATCH_ITEMS):
                yield from self._chunked_group(group)
                group, size = [], 0
            group.append(blob)
            size += claimed
        if group:
            yield from self._chunked_group(group)

    def _chunked_group(self, group: Sequence[str]) -> Iterator[tuple[str, bytes | core.Stop]]:
        maps = self._maps(group)
        sizes: dict[str, set[int]] = {}
        good: list[str] = []
        for blob in group:
            rows = maps.get(blob, [])
            if not self._is_contiguous(rows):
                yield blob, self._broken_map(blob)
            elif sum(row.size for row in rows) > self.budget.bounds.max_object_bytes:
                yield blob, self.budget.object_stop(f"blob {blob[:12]}")
            else:
                good.append(blob)
                for row in rows:
                    sizes.setdefault(row.chunk, set()).add(row.size)
        chunks = self._chunks(sizes)
        for blob in good:
            yield blob, self._assemble(blob, maps.get(blob, []), chunks)

    def _chunks(self, sizes: Mapping[str, set[int]]) -> dict[str, bytes | core.Stop]:
        """Verified chunks by hash, where they have one of the sizes that maps give them."""
        found: dict[str, bytes | core.Stop] = {}
        if not sizes or not self._has("chunks"):
            return found
        most = max(max(some) for some in sizes.values())
        select = (
            "hash, typeof(size), size, typeof(content),"
            " CASE WHEN typeof(content)='blob' THEN length(content) END,"
            f" CASE WHEN typeof(content)='blob' AND length(content)<={most} THEN content END"
        )
        for key, size_class, size, content_class, length, content in self.db.by_keys(
            select, "chunks", "hash", list(sizes)
        ):
            self.budget.check()
            chunk = key.decode("ascii")
            if chunk in found:
                found[chunk] = _bad_chunk(chunk, "two rows have this key")
            elif size_class != b"integer" or content_class != b"blob":
                found[chunk] = _bad_chunk(chunk, "a value is of the wrong storage class")
            elif size != length or length not in sizes[chunk]:
                found[chunk] = core.Stop("size_mismatch", f"chunk {chunk[:12]}: not of the size it claims")
            else:
                found[chunk] = content
        for chunk, digest in self._hash_chunks(found):
            if digest.hex() != chunk:
                found[chunk] = _bad_chunk(chunk, "the content does not have this hash")
            else:
                self.verified("blob", "chunks")
        return found

    def _hash_chunks(self, found: Mapping[str, bytes | core.Stop]) -> list[tuple[str, bytes]]:
        held = [(chunk, data) for chunk, data in found.items() if not isinstance(data, core.Stop)]
        digests = self.codec.digest_many([data for _, data in held]) if held else []
        return [(chunk, digest) for (chunk, _), digest in zip(held, digests, strict=True)]

    def _assemble(
        self, blob: str, rows: Sequence[_Chunk], chunks: Mapping[str, bytes | core.Stop]
    ) -> bytes | core.Stop:
        parts: list[bytes] = []
        missing = False
        for row in rows:
            part = chunks.get(row.chunk)
            if isinstance(part, core.Stop):
                return part
            if part is None:
                missing = True
            elif len(part) != row.size:
                return core.Stop("size_mismatch", f"chunk {row.chunk[:12]} does not have the size of its map")
            else:
                parts.append(part)
        if missing:
            return self._absent("blob", blob)
        data = b"".join(parts)
        self.charge(len(data))
        claimed = self._blobs[blob].size if self._blobs[blob].placeholder else None
        if self.codec.digest_many([data])[0].hex() == blob:
            if claimed is not None and claimed != len(data):
                return self._wrong_size(blob)
            self.verified("blob", "chunked_blobs", len(data))
            return data
        if data.startswith(oak_format.ZSTD_MAGIC):
            return self._decompress_chunks(blob, data, claimed)
        return Mismatch("blob", blob, "its chunks together do not have this hash")

    def _decompress_chunks(self, blob: str, data: bytes, claimed: int | None) -> bytes | core.Stop:
        """Known bad maps of some servers: cut from the compressed bytes. The hash of what they hold
        decides.
        """
        limit = self._limit() if claimed is None else min(claimed, self._limit())
        try:
            content = self.codec.decompress(data, limit)
        except oak_format.Malformed:
            return Mismatch("blob", blob, "its chunks together do not have this hash")
        except oak_format.Unsupported as error:
            return core.Stop("unsupported_format", f"blob {blob[:12]}: {error}")
        except oak_format.OutputLimit:
            return self._wrong_size(blob) if claimed == limit else self._over(f"blob {blob[:12]}")
        self.charge(len(content))
        if self.codec.digest_many([content])[0].hex() != blob:
            return Mismatch("blob", blob, "its chunks together do not have this hash")
        if claimed is not None and claimed != len(content):
            return self._wrong_size(blob)
        self.verified("blob", "chunked_blobs", len(content))
        if not self._sampling:
            self.report.decompressed_ids.add(blob)
        return content

    def _cross_check(self, blob: str, data: bytes, rows: Sequence[_Chunk]) -> None:
        """`--deep`: hold the chunk map of a complete, verified blob against its bytes."""
        if not self._is_contiguous(rows):
            self._deep_findings.append(self._broken_map(blob))
            return
        slices = [data[row.offset : row.offset + row.size] for row in rows]
        digests = self.codec.digest_many(slices) if slices else []
        if sum(row.size for row in rows) == len(data) and all(
            digest.hex() == row.chunk for digest, row in zip(digests, rows, strict=True)
        ):
            self.report.count("chunk_maps")
            for row in rows:
                self._deep_chunks.setdefault(row.chunk, (row.size, set()))[1].add(blob)
        else:
            self._deep_reassemble.append(blob)

    # --- What explains and what decides ---

    def _absent(self, kind: str, object_id: str) -> core.Stop:
        return Absent(kind, object_id, invalid=self.options.bounds.complete)

    def _list(self, key: str) -> list[bytes]:
        """The lines of a metadata value; none where it is absent or unusable. Never shown."""
        if key not in self._lists:
            rows = self.db.by_keys("typeof(value), value", "metadata", '"key"', [key])
            self._lists[key] = [
                line for kind, value in rows if kind == b"text" for line in value.split(b"\n")
            ]
        return self._lists[key]

    def is_sparse(self) -> bool:
        """Whether the repository was cloned for some paths only."""
        return any(line.strip() for line in self._list("sparse_paths"))

    def _outside_cone(self, path: bytes) -> bool:
        cone = (line.strip().replace(b"\\", b"/").strip(b"/") for line in self._list("sparse_paths"))
        return not any(prefix and (path == prefix or path.startswith(prefix + b"/")) for prefix in cone)

    def judge(self, stop: core.Stop) -> core.Stop:
        """What a finding about one object amounts to (`scoped_read.Store`)."""
        if isinstance(stop, Absent) and stop.kind == "blob":
            explained = None
            if stop.object_id.encode("ascii") in self._list("known_lost_blobs"):
                explained = "lost", "declared lost on the server"
            elif stop.object_id.encode("ascii") in self._list("restricted_blobs"):
                explained = "restricted", "withheld by path permissions"
            elif self.is_sparse() and stop.paths and all(self._outside_cone(path) for path in stop.paths):
                explained = "sparse", "outside the paths of this sparse clone"
            if explained:
                reason = f"content_absent_{explained[0]}"
                return core.Stop(reason, f"{stop.detail}: {explained[1]}", exit_status=stop.exit_status)
            return stop
        if isinstance(stop, Mismatch) and not self._any_verifies(stop.kind, stop.object_id):
            return core.Stop(
                "unrecognised_format", f"{stop.detail}, and no other {stop.kind} in the store verifies either"
            )
        return stop

    def _any_verifies(self, kind: str, but: str) -> bool:
        """Whether an object of the kind other than `but` verifies: one of this read, or one of a sample."""
        if self._kinds_verified[kind]:
            return True
        if kind not in self._samples:
            self._samples[kind] = self._sample(kind)
        candidates = [object_id for object_id in self._samples[kind] if object_id != but][:SAMPLE]
        return any(self._sample_verifies(kind, object_id) for object_id in candidates)

    def _sample(self, kind: str) -> list[str]:
        """The first object ids of a kind in hash order, one more than the sample; empty objects are not
        counted.
        """
        sources = {"commit": [("commits", "hash")], "tree": [("trees", "hash")]}
        sources["blob"] = [("blobs", "hash"), ("blob_chunks", "blob_hash")]
        found: set[str] = set()
        for table, column in sources[kind]:
            if not self._has(table):
                continue
            # One key a scan, so that no table is ever sorted in memory; a plain hash key needs no more
            # than this.
            last = ""
            for _ in range(SAMPLE + 1):
                sql = (
                    f"SELECT min({column} COLLATE BINARY) FROM {table} NOT INDEXED"  # noqa: S608
                    f" WHERE typeof({column})='text' AND +{column} COLLATE BINARY > ?"
                    f" AND +{column} COLLATE BINARY <> '{oak_format.EMPTY_HASH}'"
                )
                key = self.db.all(sql, (last,))[0][0]
                if key is None:
                    break
                last = key.decode("utf-8", "surrogateescape")
                if not last.isprintable():
                    break
                found.add(last)
        return sorted(found)

    def _sample_verifies(self, kind: str, object_id: str) -> bool:
        if (kind, object_id) not in self._sample_results:
            results: Iterable[tuple[str, Any]]
            self._sampling, before = True, self._sampling
            try:
                if kind == "commit":
                    results = [
                        (row.object_id, self.commit_form(row)) for row in self.commit_rows([object_id])
                    ]
                elif kind == "tree":
                    results = list(self.read_trees([object_id]))
                else:
                    results = list(self.read_blobs([object_id]))
                verifies = len(list(results)) == 1 and all(
                    result is not None and not isinstance(result, core.Stop) for _, result in results
                )
            except core.Stop as stop:
                if stop.reason in ("deadline", "memory", "instrument_failed"):
                    raise
                verifies = False
            finally:
                self._sampling = before
            self._sample_results[kind, object_id] = verifies
        return self._sample_results[kind, object_id]

    # --- Commits ---

    def commit_rows(self, ids: Sequence[str]) -> Iterator[_CommitRow]:
        """The rows of these commits, checked as far as Oak checks them before hashing."""
        for row in self.db.by_keys(_COMMIT_SELECT, "commits", "hash", ids):
            self.budget.check()
            yield _commit_row(row)

    def commit_form(self, row: _CommitRow) -> str | None:
        """How the row reproduces its hash (`oak_format.commit_form`), or None."""
        if row.commit is None or row.length > self.budget.bounds.max_object_bytes:
            return None
        return oak_format.commit_form(row.commit, bytes.fromhex(row.object_id), self.codec.digest_many)

    def open_head(self, head: str) -> None:
        """Find and verify the commit that HEAD names, and its root tree. Raises what keeps them from
        verifying.
        """
        self.head = head
        rows = list(self.commit_rows([head]))
        if not rows:
            raise core.Stop(
                "head_commit_missing", f"HEAD names commit {head[:12]}, which is not in the store"
            )
        row = rows[0]
        if len(rows) > 1:
            raise self.judge(Mismatch("commit", head, "two rows have this key"))
        if row.is_mistyped:
            raise self.judge(Mismatch("commit", head, "a value is of the wrong storage class"))
        if row.length > self.budget.bounds.max_object_bytes:
            raise self.budget.object_stop(f"commit {head[:12]}")
        form = self.commit_form(row)
        if form is None or row.commit is None:
            raise self.judge(self.history.unreproducible(row))
        self.verified("commit", "commits")
        self.report.format["commit_form"] = form
        self.open_root(row.commit.manifest)

    def verify_history(self) -> Iterator[core.Stop]:
        """`--deep`: every ancestor, and the chunk maps of complete blobs (`scoped_read.Store`)."""
        yield from self._deep_findings
        yield from self._deep_chunk_findings()
        yield from self.history.verify()

    def _deep_chunk_findings(self) -> Iterator[core.Stop]:
        wanted = {chunk: {size} for chunk, (size, _) in self._deep_chunks.items()}
        for some in _runs(list(wanted), lambda chunk: self._deep_chunks[chunk][0]):
            found = self._chunks({chunk: wanted[chunk] for chunk in some})
            for chunk in some:
                result = found.get(chunk)
                if result is None:
                    self.report.incomplete_map_ids |= self._deep_chunks[chunk][1]
                elif isinstance(result, core.Stop):
                    yield result
        for blob in self._deep_reassemble:
            for _, result in self._chunked_group([blob]):
                if isinstance(result, Absent):
                    self.report.incomplete_map_ids.add(blob)
                elif isinstance(result, Mismatch):
                    yield core.Stop("chunk_mismatch", f"blob {blob[:12]}: its chunks are of other content")
                elif isinstance(result, core.Stop):
                    yield result

    def describe(self) -> None:
        """Put into the report's format what only the reading of trees shows."""
        stored = "mixed" if len(self._tree_storage) > 1 else next(iter(self._tree_storage), None)
        self.report.format["tree_storage"] = stored


def _runs(items: Sequence[str], size_of: Callable[[str], int]) -> Iterator[Sequence[str]]:
    """Consecutive runs of items whose sizes together fit into one group."""
    run: list[str] = []
    total = 0
    for item in items:
        if run and (total + size_of(item) > _GROUP_BYTES or len(run) >= _BATCH_ITEMS):
            yield run
            run, total = [], 0
        run.append(item)
        total += size_of(item)
    if run:
        yield run


def _commit_row(row: Sequence[Any]) -> _CommitRow:
    classes, values = row[0::2], row[1::2]
    nullable = {"parent_hash", "merge_parent_hash", "message"}
    object_id = values[0].decode("ascii")
    length = sum(len(value) for value in values[1:] if isinstance(value, bytes))
    for column, kind in zip(_COMMIT_COLUMNS, classes, strict=True):
        if kind != b"text" and not (column in nullable and kind == b"null"):
            refusal = f"{column} is of the wrong storage class"
            return _CommitRow(object_id, None, None, None, refusal, True, length)
    branch_name, parent, merge_parent, manifest, author, message, timestamp = values[1:]
    commit: oak_format.Commit | None = None
    root: str | None = None
    refused: str | None = None
    with contextlib.suppress(oak_format.Malformed):
        root = oak_format.parse_hash(manifest)
    try:
        commit = oak_format.check_commit(
            branch_name, parent, merge_parent, manifest, author, message, timestamp
        )
    except oak_format.Malformed as error:
        refused = str(error)
    return _CommitRow(object_id, commit, branch_name, root, refused, False, length)


# --- History --------------------------------------------------------------------------------------


class _History:
    """The ancestors of HEAD: which are there, which verify, and what a header that does not verify means."""

    def __init__(self, store: OakStore) -> None:
        self.store = store
        self._parents: dict[str, tuple[str, ...]] | None = None
        self._doubled: set[str] = set()
        self._branch_of: dict[str, bytes] = {}
        self._refused: dict[str, _CommitRow] = {}
        self._below: dict[bytes, set[str]] = {}

    def _graph(self) -> dict[str, tuple[str, ...]]:
        """Parents of every commit row, one scan. Bounded by `--max-entries`."""
        if self._parents is None:
            parents: dict[str, tuple[str, ...]] = {}
            most = self.store.budget.bounds.max_entries
            select = "SELECT typeof(hash), hash, parent_hash, merge_parent_hash FROM commits NOT INDEXED"
            for kind, key, *above in self.store.db.rows(select):
                self.store.budget.check()
                if kind != b"text":
                    continue
                try:
                    commit = oak_format.parse_hash(key)
                except oak_format.Malformed:
                    continue
                if commit in parents:
                    self._doubled.add(commit)
                known = []
                for parent in above:
                    with contextlib.suppress(oak_format.Malformed):
                        if isinstance(parent, bytes):
                            known.append(oak_format.parse_hash(parent))
                parents[commit] = tuple(known)
                if len(parents) > most:
                    detail = f"history of more than {most} commits; raise --max-entries"
                    raise core.Stop("bound_entries", detail)
            self._parents = parents
        return self._parents

    def _ancestors(self, start: str) -> tuple[list[str], set[str]]:
        """Ancestors of a commit that are in the store, nearest first, and the parents that are not."""
        graph = self._graph()
        seen = {start}
        order: list[str] = []
        absent: set[str] = set()
        level = [start]
        while level:
            self.store.budget.check()
            above: list[str] = []
            for commit in level:
                for parent in graph[commit]:
                    if parent in seen:
                        continue
                    seen.add(parent)
                    if parent in graph:
                        above.append(parent)
                    else:
                        absent.add(parent)
            order += above
            level = above
        return order, absent

    def _examine(self, commits: Sequence[str]) -> None:
        """Verify rows; afterwards each is in `_branch_of` (it verifies) or in `_refused`."""
        todo = [commit for commit in commits if commit not in self._branch_of and commit not in self._refused]
        held: list[_CommitRow] = []
        for row in self.store.commit_rows(todo):
            if row.object_id in self._doubled:
                row = row._replace(commit=None, is_mistyped=True, refusal="two rows have this key")
            held.append(row)
            if len(held) >= _BATCH_ITEMS:
                self._examine_rows(held)
                held = []
        self._examine_rows(held)

    def _examine_rows(self, rows: Sequence[_CommitRow]) -> None:
        """The plain form of a whole batch at once, the rarer forms one by one."""
        usable = [row for row in rows if row.commit is not None]
        plain = [oak_format.preimage(row.commit, row.commit.time) for row in usable if row.commit is not None]
        digests = self.store.codec.digest_many(plain) if plain else []
        hashed = zip(usable, digests, strict=True)
        good = {row.object_id for row, digest in hashed if digest.hex() == row.object_id}
        for row in rows:
            self.store.budget.check()
            if row.object_id in good or self.store.commit_form(row) is not None:
                self._branch_of[row.object_id] = row.branch_name or b""
            else:
                self._refused[row.object_id] = row

    def _has_verified_ancestor(self, commit: str, branch: bytes) -> bool:
        """Whether an ancestor made on the branch of that name verifies."""
        if branch not in self._below:
            graph = self._graph()
            children: dict[str, list[str]] = {}
            for child, parents in graph.items():
                for parent in parents:
                    children.setdefault(parent, []).append(child)
            below: set[str] = set()
            level = [known for known, name in self._branch_of.items() if name == branch]
            while level:
                self.store.budget.check()
                fresh = {child for known in level for child in children.get(known, ()) if child not in below}
                below |= fresh
                level = list(fresh)
            self._below[branch] = below
        return commit in self._below[branch]

    def unreproducible(self, row: _CommitRow, known: bool = False) -> core.Stop:
        """What it means that this header does not reproduce its hash: a renamed branch, or a mismatch.

        A branch was renamed when no commit of that branch name among the commit's own ancestors verifies,
        and its root tree does. `known` says that the ancestors have been examined already.
        """
        commit = row.object_id
        mismatch = Mismatch("commit", commit, row.refusal or "the header does not have this hash")
        if row.is_mistyped or row.branch_name is None or row.manifest is None:
            return mismatch
        if not self.store.tree_verifies(row.manifest):
            return mismatch
        if not known:
            self._examine(self._ancestors(commit)[0])
        if self._has_verified_ancestor(commit, row.branch_name):
            # A verified ancestor is another commit that verifies, whatever a sample would show.
            return core.Stop("commit_mismatch", mismatch.detail)
        return core.Stop(
            "commit_header_not_reproducible",
            f"commit {commit[:12]}: the header does not have this hash (branch renamed after committing?)",
        )

    def verify(self) -> Iterator[core.Stop]:
        """Verify all ancestors of HEAD; fills the report's shallow boundary and yields the findings."""
        order, absent = self._ancestors(self.store.head)
        self.store.report.shallow_boundary |= absent
        self._examine(order)
        verified = sum(1 for commit in order if commit in self._branch_of)
        if verified:
            self.store.report.count("ancestors", verified)
        for commit in order:
            if commit in self._refused:
                yield self.unreproducible(self._refused[commit], known=True)


# --- Opening --------------------------------------------------------------------------------------


def _check_migrations(db: oak_database.Database, report: core.Report) -> None:
    """The format pin on migrations: all 15 succeeded, none newer, none unknown but those from before the
    baseline.
    """
    columns = "typeof(version), version, typeof(succeeded), succeeded"
    select = f"SELECT {columns} FROM schema_migrations NOT INDEXED"  # noqa: S608
    seen: set[str] = set()
    old: list[str] = []
    newer: list[str] = []
    problem = None
    for count, (kind, version, succeeded_class, succeeded) in enumerate(db.rows(select)):
        if count >= MAX_MIGRATION_ROWS:
            problem = problem or f"lists more than {MAX_MIGRATION_ROWS} migrations"
            break
        name = version.decode("utf-8", "replace") if kind == b"text" else ""
        if kind != b"text" or name in seen:
            problem = problem or "lists a migration twice or without a name"
            continue
        seen.add(name)
        number, _, _ = name.partition("_")
        is_number = number.isascii() and number.isdigit()
        if name in MIGRATIONS:
            pass
        elif is_number and len(number) == 3 and 1 <= int(number) <= 11:
            old.append(name)
        elif is_number and len(number) == 4 and int(number) >= len(MIGRATIONS):
            newer.append(name)
        else:
            problem = problem or "lists a migration that no known Oak makes"
            continue
        if (succeeded_class, succeeded) != (b"integer", 1):
            problem = problem or "lists a migration that did not succeed"
    report.format["newest_migration"] = core.one_line(max(newer), 100) if newer else NEWEST_MIGRATION
    report.format["old_migrations"] = sorted(core.one_line(name, 100) for name in old[:100])
    if newer:
        raise core.Stop(
            "newer_format", f"migrations newer than {NEWEST_MIGRATION}; use a reader that knows them"
        )
    missing = [name for name in MIGRATIONS if name not in seen]
    if missing:
        report.format["newest_migration"] = max((name for name in MIGRATIONS if name in seen), default=None)
        problem = problem or f"lacks the migration {missing[0]}"
    if problem:
        raise core.Stop("unrecognised_format", f".oak/oak.db {problem}")


def _metadata(db: oak_database.Database, key: str) -> bytes | None:
    """A metadata value that decides something. Raises `Malformed` for a wrong storage class or a doubled
    key.
    """
    found = db.by_keys("typeof(value), value", "metadata", '"key"', [key])
    rows = list(itertools.islice(found, 2))
    if not rows:
        return None
    if len(rows) > 1 or rows[0][0] != b"text":
        raise oak_format.Malformed("doubled or not text")
    value: bytes = rows[0][1]
    return value


def _check_hash_format(db: oak_database.Database) -> None:
    try:
        value = _metadata(db, "hash_format")
    except oak_format.Malformed:
        value = b""
    if value not in (None, b"v1"):
        raise core.Stop("unrecognised_format", "the store declares a hash format other than v1")


def _resolve_head(db: oak_database.Database, budget: core.Budget) -> str:
    """The commit that HEAD names, as Oak's status, commit and hash commands resolve it. Raises `Stop`
    (exit 1).
    """
    try:
        branch = _metadata(db, "current_branch")
        head = None if branch else _metadata(db, "head")
    except oak_format.Malformed:
        raise core.Stop("malformed_head", "a metadata row that gives HEAD is doubled or not text") from None
    if branch:
        head = _branch_head(db, budget, branch)
    if head is None:
        raise core.Stop("no_committed_head", "the repository has no commit yet")
    try:
        return oak_format.parse_hash(head)
    except oak_format.Malformed:
        raise core.Stop("malformed_head", "HEAD is not 64 lower-case hexadecimal digits") from None


def _branch_head(db: oak_database.Database, budget: core.Budget, branch: bytes) -> bytes | None:
    """The head of a branch, or of the nearest parent branch that has one. A metadata `head` is not
    consulted.
    """
    seen: set[bytes] = set()
    for _ in range(MAX_PARENT_HOPS + 1):
        budget.check()
        if branch in seen:
            raise core.Stop("head_cycle", "the parents of the current branch lead in a circle")
        seen.add(branch)
        head = _one_text(db, "head_hash", "branch_heads", "branch_name", branch)
        if head is not None:
            return head
        parent = _one_text(db, "parent_branch", "branches", "name", branch)
        if parent is None:
            return None
        branch = parent
    raise core.Stop("head_cycle", f"more than {MAX_PARENT_HOPS} parent branches without a commit")


def _one_text(db: oak_database.Database, column: str, table: str, key: str, name: bytes) -> bytes | None:
    """The value in the one row of that name; None for no row or NULL."""
    try:
        wanted = name.decode("utf-8")
    except UnicodeDecodeError:
        raise core.Stop("malformed_head", "a branch name is not UTF-8") from None
    found = db.by_keys(f"typeof({column}), {column}", table, key, [wanted])
    rows = list(itertools.islice(found, 2))
    if not rows or (rows[0][0] == b"null" and len(rows) == 1 and table == "branches"):
        return None
    if len(rows) > 1 or rows[0][0] != b"text":
        raise core.Stop("malformed_head", f"a row of {table} that gives HEAD is doubled or not text")
    value: bytes = rows[0][1]
    return value


def open_store(
    options: core.Options, report: core.Report, budget: core.Budget, cleanup: contextlib.ExitStack
) -> core.Snapshot:
    """Open the repository of the options: copy, pin the format, resolve and verify HEAD and its root tree."""
    if not oak_database.HAS_SQLITE:
        raise core.Stop("instrument_missing", "this Python has no sqlite3 module")
    codec = _native_codec() if options.backend == "native" else _pure_codec(budget)
    report.codec_sha256 = core.files_sha256(codec.files)
    report.dependencies = codec.dependencies
    path = oak_database.copy_store(core, options.repo, budget, report, cleanup)
    oak_database.check_header(core, path)
    damaged = False
    try:
        db = oak_database.Database(core, path, budget, cleanup)
        db.check_schema()
        damaged = not db.is_sound()
        report.format["name"] = "oak-sqlite-v1"
        _check_migrations(db, report)
        _check_hash_format(db)
        report.head = _resolve_head(db, budget)
        store = OakStore(db, codec, options, report, budget)
        report.format["compacted"] = "tree_entries" not in db.tables
        report.format["sparse"] = store.is_sparse()
        store.open_head(report.head)
    except oak_database.Damaged as error:
        detail = f".oak/oak.db is damaged ({error}) and HEAD does not verify"
        raise core.Stop("unrecognised_format", detail) from None
    except core.Stop as stop:
        if damaged and stop.exit_status != 77:
            detail = f".oak/oak.db is damaged and HEAD does not verify ({stop.reason})"
            raise core.Stop("unrecognised_format", detail) from None
        raise
    cleanup.callback(store.describe)
    if damaged:
        raise core.Stop("store_damaged", ".oak/oak.db is damaged, although HEAD and its root tree verify")
    db.is_recognised = True
    return core.Snapshot(store, store.root_id)


READER = core.Reader(
    name="oak_sqlite_reader",
    version=VERSION,
    vcs="oak",
    prog="oak_sqlite_reader.py",
    description="Read and verify the commit that HEAD names, from REPO/.oak/oak.db, without running Oak.",
    backends=("pure", "native"),
    default_backend="pure",
    code_files=tuple(
        os.path.join(_HERE, name)
        for name in ("oak_sqlite_reader.py", "oak_database.py", "oak_format.py", "scoped_read.py")
    ),
    open=open_store,
)

if __name__ == "__main__":
    sys.exit(core.main(READER))
