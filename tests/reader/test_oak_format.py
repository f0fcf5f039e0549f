"""Oak's object format: the constants that Oak's own tests pin, and the values computed from the
description.
"""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader import oak_format, pureblake3, purezstd
from reader.oak_format import EMPTY_HASH, Malformed, Timestamp
from reader.oak_sqlite_reader import MIGRATIONS


def h(data: bytes) -> str:
    return pureblake3.digest(data).hex()


R = (
    b"tree\tdir\tde21ae40eda3f9ef183c780fd1640d17f8e858f3956b4b681d794d9c5243db93\ttree\n"
    b"blob\thello.txt\t8e4c7c1b99dbfd50e7a95185fead5ee1448fa904a2fdd778eaf5f2dbfd629a99\tregular\n"
    b"blob\tlink\tc1b130578061e462dc4595c987e151d8715d2702ff08cf24aad9f90410fb295e\tsymlink\n"
    b"blob\trun.sh\t4b694fa6468140836e2f43625aca1150ec72032dc23a12e13416ca026c647ef3\texecutable"
)
R_HASH = "82a0dcf345f20b87b743d8299ca00c56bace0ce66dca53ed87a5ef61375f9a7b"
R_FRAME = bytes.fromhex(
    "28b52ffd00585d07005694371a8035ed21205b1442e1eb2336933e034bbbed6e7387c43484ea012f002f003100880201b81b07298b"
    "bae065dac63d6d6a1022935b5e535dff58171aeb2f3da9a8bdef176e2f74b6f32646a189bb71044522c00db2cb7ba61ff57d3ebb9e"
    "d3fdc758cbaf88e69ecdfea996cbc72bfb51ef224b27a12b39088e01a2289c405087846138140a818201e2b987be0c6b7f9b19ef93"
    "d6ffd5b94e3bda96e64737e526a63e836ea6f46415439688e150280c0e5e203e12c9099c94f78326992b4ec6b0989f71b9d457ea4e"
    "f24a334e9c670afeb9295a686ad0f0e31a848430300802008d15239ab6214801"
)
DIR = b"blob\tinner.txt\t5bbc85533a78b537b21a51204a0fc3c8c1b0743953b42a883b06ad7a4da24b8d\tregular"
DIR_FRAME = bytes.fromhex(
    "28b52ffd00586d02007245121790a76d00ac709be0231221c3ffb028f2bbbb1b72579c41c985618012397b341fb41e03eab76bc35f"
    "060eb55ecc9a338232969574b1ebe5577d97b9e64f721c0e2221c32090178a0700"
)


@pytest.mark.parametrize(
    ("content", "digest"),
    [
        (b"", EMPTY_HASH),
        (b"hello world", "d74981efa70a0c880b8d8c1985d075dbcbf679b99a5f9914e5aaf96b831a9e24"),
        (b"hello\n", "8e4c7c1b99dbfd50e7a95185fead5ee1448fa904a2fdd778eaf5f2dbfd629a99"),
        (b"#!/bin/sh\necho hi\n", "4b694fa6468140836e2f43625aca1150ec72032dc23a12e13416ca026c647ef3"),
        (b"hello.txt", "c1b130578061e462dc4595c987e151d8715d2702ff08cf24aad9f90410fb295e"),
        (b"inner\n", "5bbc85533a78b537b21a51204a0fc3c8c1b0743953b42a883b06ad7a4da24b8d"),
        (b"hello\n" * 100, "e6c45c9f162c7193ea9f9939784e2d3ed8f99eafbf79cbb82233d13b9089b14e"),
        (DIR, "de21ae40eda3f9ef183c780fd1640d17f8e858f3956b4b681d794d9c5243db93"),
        (R, R_HASH),
    ],
)
def test_plain_blake3(content: bytes, digest: str) -> None:
    assert h(content) == digest


@pytest.mark.parametrize(
    ("frame", "content"),
    [
        ("28b52ffd00586d00003068656c6c6f0a01004f529522", b"hello\n" * 100),
        ("28b52ffd6058016d00003068656c6c6f0a01004f529522", b"hello\n" * 100),
        ("28b52ffd2000010000", b""),
        (R_FRAME.hex(), R),
        (DIR_FRAME.hex(), DIR),
    ],
)
def test_frames(frame: str, content: bytes) -> None:
    data = bytes.fromhex(frame)
    oak_format.check_frames(data)
    assert purezstd.decompress(data, max_output_size=len(content)) == content


# --- Trees ----------------------------------------------------------------------------------------


def test_trees_of_oaks_own_tests() -> None:
    text = f"blob\ta.txt\t{h(b'a')}\tregular\ntree\tsub\t{h(b'sub')}\ttree".encode()
    assert h(text) == "26fa3b9ad707a970f25bb9821cde463e244307bfe8234a1237eed50a421e85ea"
    assert [entry[0] for entry in oak_format.parse_tree(text)] == [b"a.txt", b"sub"]
    below = f"blob\tfile.txt\t{h(b'content')}\tregular".encode()
    root = f"tree\tdir\t{h(below)}\ttree".encode()
    assert h(root) == "863eb9a88032134f08722aa08b4aaa346d7408c17dbea4597957175bf907ab2f"


def test_order_is_that_of_bytes() -> None:
    hello = "8e4c7c1b99dbfd50e7a95185fead5ee1448fa904a2fdd778eaf5f2dbfd629a99"
    names = ["Z", "a", "a-b", "a.txt", "é", "Ａ", "\U0001f600"]
    lines = [
        f"tree\ta\t{h(DIR)}\ttree" if name == "a" else f"blob\t{name}\t{hello}\tregular" for name in names
    ]
    data = "\n".join(lines).encode()
    assert h(data) == "c0bee78aad54037d24331241ad1008696650d22aa6bd168dd17b8c4a88b3ba61"
    assert [entry[0].decode() for entry in oak_format.parse_tree(data)] == names
    for first in range(len(lines) - 1):
        swapped = [*lines[:first], lines[first + 1], lines[first], *lines[first + 2 :]]
        with pytest.raises(Malformed, match="order"):
            oak_format.parse_tree("\n".join(swapped).encode())


def test_parsed_modes() -> None:
    assert [(name, oct(mode)) for name, mode, _ in oak_format.parse_tree(R)] == [
        (b"dir", "0o40000"),
        (b"hello.txt", "0o100644"),
        (b"link", "0o120000"),
        (b"run.sh", "0o100755"),
    ]
    assert oak_format.parse_tree(b"") == []


def line(kind: str = "blob", name: bytes = b"a", object_id: str = EMPTY_HASH, mode: str = "regular") -> bytes:
    return b"\t".join((kind.encode(), name, object_id.encode(), mode.encode()))


@pytest.mark.parametrize(
    "data",
    [
        line() + b"\n",
        b"\n",
        b"\n" + line(),
        line() + b"\n\n" + line(name=b"b"),
        line() + b"\n" + line(),
        line() + b"\n" + line("tree", mode="tree"),
        line(name=b"b") + b"\n" + line(name=b"a"),
        line(name=b""),
        line(name=b"."),
        line(name=b".."),
        line(name=b"a/b"),
        line(name=b"a\rb"),
        line(name=b"a\0b"),
        line(name=b"a\x7fb"),
        line(name="a\x85b".encode()),
        line(name="a\x9f".encode()),
        line(name=b"\xff"),
        line(name=b"a\tb"),
        line(name=b"\xed\xa0\x80"),
        line("tree"),
        line("blob", mode="tree"),
        line(mode="gitlink"),
        line(mode="100644"),
        line(mode="regular "),
        line(mode="Regular"),
        line("commit"),
        line("Blob"),
        line(object_id=EMPTY_HASH.upper()),
        line(object_id=EMPTY_HASH[:40]),
        line(object_id=EMPTY_HASH + "0"),
        line()[:-8],
        line() + b"\t",
        b"blob",
    ],
)
def test_trees_that_are_not_canonical(data: bytes) -> None:
    with pytest.raises(Malformed):
        oak_format.parse_tree(data)


@pytest.mark.parametrize(
    "name", [".oak", ".git", "a\\b", "a:b", "a. ", "CON", "...", " ", "\u00a0", "\u200d", "n" * 5000]
)
def test_names_that_oak_allows(name: str) -> None:
    assert oak_format.parse_tree(line(name=name.encode()))[0][0] == name.encode()


def test_legacy_rows_make_the_same_bytes() -> None:
    rows = [
        (
            b"run.sh",
            b"blob",
            b"4b694fa6468140836e2f43625aca1150ec72032dc23a12e13416ca026c647ef3",
            b"executable",
        ),
        (b"dir", b"tree", b"de21ae40eda3f9ef183c780fd1640d17f8e858f3956b4b681d794d9c5243db93", b"regular"),
        (b"link", b"blob", b"c1b130578061e462dc4595c987e151d8715d2702ff08cf24aad9f90410fb295e", b"symlink"),
        (
            b"hello.txt",
            b"blob",
            b"8e4c7c1b99dbfd50e7a95185fead5ee1448fa904a2fdd778eaf5f2dbfd629a99",
            b"regular",
        ),
    ]
    assert oak_format.join_tree(rows) == R


# --- Timestamps -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("2024-01-02T03:04:05+00:00", "2024-01-02T03:04:05+00:00"),
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05+00:00"),
        ("2024-01-02t03:04:05z", "2024-01-02T03:04:05+00:00"),
        ("2024-01-02T03:04:05.000000000Z", "2024-01-02T03:04:05+00:00"),
        ("2026-06-27T04:33:39.25Z", "2026-06-27T04:33:39.250+00:00"),
        ("2026-06-27T04:33:39.9654+00:00", "2026-06-27T04:33:39.965400+00:00"),
        ("2026-06-27T04:33:39.1234567+00:00", "2026-06-27T04:33:39.123456700+00:00"),
        ("2026-06-27T04:33:39.1234567899+00:00", "2026-06-27T04:33:39.123456789+00:00"),
        ("2026-06-27T04:33:39.965405+05:30", "2026-06-26T23:03:39.965405+00:00"),
        ("2026-12-31T23:30:00-01:00", "2027-01-01T00:30:00+00:00"),
        ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00+00:00"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00+00:00"),
        ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999+00:00"),
    ],
)
def test_timestamps(text: str, rendered: str) -> None:
    assert oak_format.render_timestamp(oak_format.parse_timestamp(text.encode())).decode() == rendered


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-01-02",
        "2024-01-02T03:04:05",
        "2024-01-02T03:04:60Z",
        "2024-01-02T24:00:00Z",
        "2024-13-01T00:00:00Z",
        "2024-00-01T00:00:00Z",
        "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2024-04-31T00:00:00Z",
        "2024-01-02T03:04:05.Z",
        "2024-01-02T03:04:05+0000",
        "2024-01-02T03:04:05+24:00",
        "2024-01-02T03:04:05+00:60",
        "+2024-01-02T03:04:05Z",
        "12024-01-02T03:04:05Z",
        " 2024-01-02T03:04:05Z",
        "2024-01-02T03:04:05Z\n",
        "２024-01-02T03:04:05Z",
        "0000-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_timestamps_that_are_refused(text: str) -> None:
    with pytest.raises(Malformed):
        oak_format.parse_timestamp(text.encode())


@given(st.datetimes(min_value=datetime.datetime(1, 1, 2), max_value=datetime.datetime(9999, 12, 30)))
def test_calendar_against_the_standard_library(moment: datetime.datetime) -> None:
    moment = moment.replace(tzinfo=datetime.UTC)
    parsed = oak_format.parse_timestamp(moment.isoformat().encode())
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert parsed.seconds == (moment - epoch) // datetime.timedelta(seconds=1)
    assert parsed.nanoseconds == moment.microsecond * 1000
    assert oak_format.parse_timestamp(oak_format.render_timestamp(parsed)) == parsed


# --- Commits --------------------------------------------------------------------------------------


def form(expected: str, *fields: bytes | None) -> str | None:
    commit = oak_format.check_commit(*fields)  # type: ignore[arg-type]
    return oak_format.commit_form(commit, bytes.fromhex(expected), pureblake3.digest_many)


PARENT, MERGE, MANIFEST = h(b"parent").encode(), h(b"merge").encode(), h(b"manifest").encode()
ZACH = (b"Zach <zach@oak.space>", b"subject\n\nbody")
C1 = b"6374c03bdfaa169ed6e1b7e9e619d2393716643a8229c65869c8fbe1e94a5007"
C2 = b"c6e9e6b58870393cc52d225653e32522d9d387c9996cdf2c5a18728d14f795fe"
ADA = b"Ada <ada@example.com>"
ROOT = R_HASH.encode()
NONE = EMPTY_HASH.encode()

COMMITS = [
    (
        "6b575aadf3ed7e96f242a521087baf9498a67e3b107ee6a2880ab321151912fb",
        "v1",
        (b"main", None, None, MANIFEST, b"tester", b"a message", b"2024-01-02T03:04:05+00:00"),
    ),
    (
        "e4fe01caceba2c8fb905de9477af391e9c9ac50195f48025e922f70608868ae0",
        "v1",
        (b"main", PARENT, None, MANIFEST, *ZACH, b"2024-01-02T03:04:05+00:00"),
    ),
    (
        "7a667e00cf11830eb56b2014827566dd92fd379be836f49cbcb24939dc367081",
        "v1",
        (b"main", PARENT, None, MANIFEST, *ZACH, b"2026-06-27T04:33:39.250+00:00"),
    ),
    (
        "ed0e25d76ab3af99c91b19a0b96e7e3ae8e972c92a3bf8106b392813f29506a9",
        "v1",
        (b"main", PARENT, None, MANIFEST, *ZACH, b"2026-06-27T04:33:39.965405+00:00"),
    ),
    (
        "bd691a79fccc1a680c59ab7fdeb06d0506af828d62703605d35e72cf55798070",
        "v1",
        (b"main", PARENT, None, MANIFEST, *ZACH, b"2026-06-27T04:33:39.123456789+00:00"),
    ),
    (
        "5154b359afbae5b4a92afcb076867baf531ce6d19c3cc3ebe4ee15f159575065",
        "v1",
        (b"main", PARENT, None, MANIFEST, *ZACH, b"2026-06-27T04:33:39.965405+05:30"),
    ),
    (
        "1375c4cb565921d18c3a06c5b6366ba4aa802c71d228cc4e32f750b1f5d4c99d",
        "v1",
        (b"main", PARENT, MERGE, MANIFEST, b"tester", b"merge", b"2026-06-27T04:33:39.965405+00:00"),
    ),
    (
        "93dd864faf6f23324fa2010c7f6d51b5aa456686586a2b65c132575661866b0a",
        "v1",
        (b"main", None, None, NONE, b"tester", None, b"2026-06-24T00:00:00+00:00"),
    ),
    (C1.decode(), "v1", (b"dev-3f2a8b", None, None, ROOT, ADA, None, b"2026-07-04T08:25:15.778307+00:00")),
    (C2.decode(), "v1", (b"dev-3f2a8b", C1, None, ROOT, ADA, b"", b"2026-07-04T09:00:00Z")),
    (
        "37a8356a73b787ad6376d491ab3837370a4ec1b16c81c211b26bba3b9823a034",
        "v1",
        (b"main", C1, C2, ROOT, ADA, b"Add things\n\nwith body", b"2026-07-04T09:30:00.250+00:00"),
    ),
    (
        "444f2c944b27af688c0479afc5cb845d9f272604370d2806f1eab15d1ae255c8",
        "v1_legacy",
        (b"main", C1, None, ROOT, ADA, b"old style", b"2026-03-01T10:11:12.123456789+00:00"),
    ),
    (
        "0ca7487d96f4346b344818c019ade93fee7a2778cc2be20f23236e80ba71aaa5",
        "v1_recovered",
        (b"main", None, None, NONE, b"tester", b"squash message", b"2026-07-04T08:25:15.778307+00:00"),
    ),
    (
        "ac6fff620ff24eec5f9a318cda10d9e5ddf6cd623490ae4b2ea05c9e2d7589aa",
        "v1_recovered",
        (b"main", None, None, NONE, b"tester", None, b"2026-07-04T08:25:15+00:00"),
    ),
    (
        "c44f9300f8a821a17be54a68a3cf624a9c8464a0bf7b11df9546ff5ebaa22264",
        "v1",
        (b"main", None, None, NONE, b"tester", b"squash message", b"2026-07-04T08:25:15.778307+00:00"),
    ),
]


@pytest.mark.parametrize(("digest", "how", "fields"), COMMITS)
def test_commits(digest: str, how: str, fields: tuple[bytes | None, ...]) -> None:
    assert form(digest, *fields) == how


@pytest.mark.parametrize(("digest", "how", "fields"), COMMITS)
@pytest.mark.parametrize("position", range(7))
def test_every_field_is_covered(
    digest: str, how: str, fields: tuple[bytes | None, ...], position: int
) -> None:
    changed = list(fields)
    old = changed[position]
    if position in (1, 2, 3):
        changed[position] = h(b"other").encode()
    elif position == 6:
        assert old is not None
        changed[position] = old.replace(b"T0", b"T1", 1) if b"T0" in old else old.replace(b"T10", b"T11")
    else:
        changed[position] = (old or b"") + b"x"
    assert form(digest, *changed) is None


def test_no_tail_search_on_six_fields() -> None:
    digest = "444f2c944b27af688c0479afc5cb845d9f272604370d2806f1eab15d1ae255c8"
    assert (
        form(digest, b"main", C1, None, ROOT, ADA, b"old style", b"2026-03-01T10:11:12.123456+00:00") is None
    )


def test_no_six_fields_with_two_parents() -> None:
    digest = "444f2c944b27af688c0479afc5cb845d9f272604370d2806f1eab15d1ae255c8"
    fields = (b"main", C1, C2, ROOT, ADA, b"old style", b"2026-03-01T10:11:12.123456789+00:00")
    assert form(digest, *fields) is None


def test_tails_are_one_to_999() -> None:
    commit = oak_format.check_commit(b"main", None, None, NONE, b"a", None, b"2026-01-01T00:00:00.000001Z")
    tails = oak_format.truncated_preimages(commit)
    assert len(tails) == 999
    assert tails[0] == oak_format.preimage(commit, Timestamp(commit.time.seconds, 1001))
    assert tails[-1] == oak_format.preimage(commit, Timestamp(commit.time.seconds, 1999))


@pytest.mark.parametrize(
    "changes",
    [
        {"branch_name": b"a\nb"},
        {"branch_name": b"a\x00"},
        {"branch_name": "a\x80".encode()},
        {"branch_name": b"\xff"},
        {"author": b"a\tb"},
        {"author": b"a\x7f"},
        {"author": b"\xff"},
        {"message": b"\xff"},
        {"parent": b""},
        {"parent": b"x" * 64},
        {"parent": C1[:40]},
        {"merge_parent": b""},
        {"merge_parent": C1.upper()},
        {"manifest": b""},
        {"timestamp": b"now"},
    ],
)
def test_rows_that_oak_refuses(changes: dict[str, bytes]) -> None:
    row = {
        "branch_name": b"main",
        "parent": None,
        "merge_parent": None,
        "manifest": ROOT,
        "author": ADA,
        "message": b"a\x00b\n",
        "timestamp": b"2026-01-01T00:00:00Z",
    }
    oak_format.check_commit(**row)  # type: ignore[arg-type]
    with pytest.raises(Malformed):
        oak_format.check_commit(**{**row, **changes})  # type: ignore[arg-type]


# --- Frames from the outside ----------------------------------------------------------------------


HELLO = bytes.fromhex("28b52ffd00586d00003068656c6c6f0a01004f529522")
SKIP = b"\x5f\x2a\x4d\x18\x03\x00\x00\x00abc"


@pytest.mark.parametrize("data", [HELLO, HELLO + HELLO, SKIP, SKIP + HELLO, HELLO + SKIP + HELLO])
def test_whole_frames(data: bytes) -> None:
    oak_format.check_frames(data)


@pytest.mark.parametrize(
    "data", [b"", b"\0", HELLO + b"\0", HELLO + b"\0\0\0\0", b"plain text", HELLO + HELLO[:-1]]
)
def test_frames_that_are_not_whole(data: bytes) -> None:
    with pytest.raises(Malformed):
        oak_format.check_frames(data)


@pytest.mark.parametrize("length", range(1, len(SKIP + HELLO)))
def test_every_cut_is_seen(length: int) -> None:
    if length != len(SKIP):
        with pytest.raises(Malformed):
            oak_format.check_frames((SKIP + HELLO)[:length])


def header(descriptor: int, *rest: int) -> bytes:
    return b"\x28\xb5\x2f\xfd" + bytes([descriptor, *rest]) + b"\x01\x00\x00"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (header(0x00, 13 << 3), None),
        (header(0x00, 13 << 3 | 1), oak_format.Unsupported),
        (header(0x00, 0xFF), oak_format.Unsupported),
        (header(0x08, 13 << 3), Malformed),
        (header(0x10, 0), None),
        (header(0x01, 0, 0), None),
        (header(0x01, 0, 1), oak_format.Unsupported),
        (header(0x02, 0, 0, 1), oak_format.Unsupported),
        (header(0x03, 0, 0, 0, 0, 1), oak_format.Unsupported),
        (header(0xA0, 0, 0, 0x80, 0), None),
        (header(0xA0, 1, 0, 0x80, 0), oak_format.Unsupported),
        (header(0x60, 0xFF, 0xFF), None),
        (header(0xE0, 0, 0, 0, 0, 0, 0, 0, 1), oak_format.Unsupported),
        (header(0x04, 0) + b"sum!", None),
        (header(0x04, 0) + b"sum", Malformed),
        (header(0x00, 0)[:-3] + b"\x07\x00\x00", Malformed),
        (header(0x00, 0)[:-3] + b"\xff\xff\xff", Malformed),
        (header(0x00, 0)[:-3] + b"\xfb\xff\xffx", None),
    ],
)
def test_headers(data: bytes, problem: type[Exception] | None) -> None:
    if problem is None:
        oak_format.check_frames(data)
    else:
        with pytest.raises(problem):
            oak_format.check_frames(data)


@pytest.mark.parametrize(
    "text", [b"", C1[:-1], C1 + b"0", C1.upper(), C1[:-1] + b"g", C1[:-1] + b"\n", C1[:40]]
)
def test_hashes(text: bytes) -> None:
    assert oak_format.parse_hash(C1) == C1.decode()
    with pytest.raises(Malformed):
        oak_format.parse_hash(text)


def test_migrations() -> None:
    assert len(MIGRATIONS) == 15 and sorted(MIGRATIONS) == list(MIGRATIONS)
    assert [int(name[:4]) for name in MIGRATIONS] == list(range(15))
