"""The few settings of a repository that decide how its store must be read.

A configuration file is lines of ``[section]`` or ``[section "subsection"]`` headers and ``key = value``
settings; ``#`` and ``;`` begin comments, a value may be quoted and continue on the next line after a
backslash. Section names and keys have no case. Only settings of the sections ``core`` and ``extensions``
without subsection are used, nothing is included from elsewhere, and no setting is ever acted upon: one that
would run a program has no meaning here.

Git's rule for what may be read (``core.repositoryFormatVersion``): in version 0 a few extensions are honoured
and unknown ones ignored; in version 1 an unknown extension forbids reading; a higher version is from the
future.
"""

from __future__ import annotations

import re

from reader.git_objects import FORMATS, SHA1, ObjectFormat

MAX_CONFIG_BYTES = 4 << 20

_SECTION = re.compile(rb'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n\0]|\\[^\n\0])*)")?\]')
_KEY = re.compile(rb"([A-Za-z][A-Za-z0-9-]*)[ \t]*")
_ESCAPES = {0x6E: b"\n", 0x74: b"\t", 0x62: b"\b", 0x5C: b"\\", 0x22: b'"'}

_HARMLESS = frozenset(
    (b"noop", b"noop-v1", b"preciousobjects", b"partialclone", b"worktreeconfig", b"relativeworktrees")
)
"""Extensions that do not change how committed objects are read."""

_VERSION_1_ONLY = frozenset(
    (b"noop-v1", b"objectformat", b"refstorage", b"compatobjectformat", b"relativeworktrees")
)


class ConfigFault(Exception):
    """The repository cannot be read as configured; ``reason`` is the reason code of the report."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def parse_config(content: bytes) -> dict[tuple[bytes, bytes], list[bytes | None]]:
    """All values of ``core`` and ``extensions`` by (section, key), both in lower case, in the file's order.

    A key without ``=`` has the value None. Raises ConfigFault ``unrecognised_format`` where the file is not
    well formed.
    """
    settings: dict[tuple[bytes, bytes], list[bytes | None]] = {}
    if content.startswith(b"\xef\xbb\xbf"):
        content = content[3:]
    if b"\0" in content:
        raise ConfigFault("unrecognised_format", "the repository's configuration holds a NUL byte")
    content = content.replace(b"\r\n", b"\n")
    position, end = 0, len(content)
    section: bytes | None = None
    known = False

    def fault() -> ConfigFault:
        line = content.count(b"\n", 0, position) + 1
        return ConfigFault(
            "unrecognised_format", f"the repository's configuration is malformed (line {line})"
        )

    while position < end:
        byte = content[position]
        if byte in b" \t\n\r\v\f":
            position += 1
        elif byte in b"#;":
            newline = content.find(b"\n", position)
            position = end if newline < 0 else newline + 1
        elif byte == 0x5B:
            header = _SECTION.match(content, position)
            if header is None:
                raise fault()
            section = header[1].lower()
            known = header[2] is None and section in (b"core", b"extensions")
            position = header.end()
        else:
            key = _KEY.match(content, position)
            if key is None or section is None:
                raise fault()
            position = key.end()
            value: bytes | None = None
            if position < end and content[position] == 0x3D:
                parsed = _parse_value(content, position + 1)
                if parsed is None:
                    raise fault()
                value, position = parsed
            elif position < end and content[position] not in b"\n#;":
                raise fault()
            if known:
                settings.setdefault((section, key[1].lower()), []).append(value)
    return settings


def _parse_value(content: bytes, position: int) -> tuple[bytes, int] | None:
    """Value that begins at ``position`` and where it ends; None where it is malformed."""
    value = bytearray()
    kept = 0
    quoted = False
    end = len(content)
    while position < end:
        byte = content[position]
        position += 1
        if byte == 0x0A:
            position -= 1
            break
        if byte == 0x5C:
            if position >= end:
                return None
            escaped = content[position]
            position += 1
            if escaped == 0x0A:
                continue
            if escaped not in _ESCAPES:
                return None
            value += _ESCAPES[escaped]
            kept = len(value)
        elif byte == 0x22:
            quoted = not quoted
            kept = len(value)
        elif not quoted and byte in b"#;":
            newline = content.find(b"\n", position)
            position = end if newline < 0 else newline
            break
        elif quoted or byte not in b" \t\r\v\f":
            value.append(byte)
            kept = len(value)
        elif value:
            value.append(byte)
    if quoted:
        return None
    return bytes(value[:kept]), position


def object_format_of(content: bytes | None) -> ObjectFormat:
    """Hash function of the repository with this configuration (None: there is no configuration file).

    Raises ConfigFault: ``newer_format``, ``unsupported_format``, ``unrecognised_format``.
    """
    settings = parse_config(content or b"")
    versions = settings.get((b"core", b"repositoryformatversion"), [b"0"])
    version = versions[-1]
    if version is None or not re.fullmatch(rb"[0-9]{1,9}", version) or len(set(versions)) > 1:
        raise ConfigFault("unrecognised_format", "core.repositoryFormatVersion is not one plain number")
    number = int(version)
    if number > 1:
        raise ConfigFault(
            "newer_format", f"the repository has format version {number}, this reader knows 0 and 1"
        )
    object_format = SHA1
    for (section, key), values in settings.items():
        if section != b"extensions":
            continue
        if number == 0:
            if key in _VERSION_1_ONLY:
                raise ConfigFault(
                    "unrecognised_format",
                    f"extensions.{key.decode()} is set, which format version 0 does not have",
                )
            continue
        if key in _HARMLESS:
            continue
        if key not in (b"objectformat", b"refstorage"):
            raise ConfigFault(
                "unsupported_format", "the repository uses an extension that this reader does not know"
            )
        value = values[-1]
        if value is None or len(set(values)) > 1:
            raise ConfigFault("unrecognised_format", f"extensions.{key.decode()} has no single value")
        if key == b"refstorage":
            if value != b"files":
                raise ConfigFault(
                    "unsupported_format", "references are not kept in files (reftable or newer)"
                )
        else:
            named = FORMATS.get(value.decode("ascii", "replace"))
            if named is None:
                raise ConfigFault(
                    "unsupported_format", "the repository uses an object format that is not known"
                )
            object_format = named
    return object_format
