"""Oak stores for the benchmark and the fuzzer, made with the builder that the tests use."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def builder() -> ModuleType:
    """The module `tests/reader/oak_store.py`."""
    if "oak_store" not in sys.modules:
        spec = importlib.util.spec_from_file_location("oak_store", ROOT / "tests" / "reader" / "oak_store.py")
        if spec is None or spec.loader is None:
            raise ImportError("tests/reader/oak_store.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["oak_store"] = module
        spec.loader.exec_module(module)
    return sys.modules["oak_store"]


def small(repo: Path) -> Path:
    """Two commits, a link, an executable, a chunked blob, a legacy tree: as little as holds every kind of
    row.
    """
    build = builder()
    store: Any = build.Store(repo, page_size=512)
    first = store.commit(store.files({"hello.txt": b"hello\n"}, legacy=True))
    chunked = store.chunked(b"chunked content " * 20, [200, 120])
    hello, run, link = store.blob(b"hello\n" * 100), store.blob(b"#!/bin/sh\n"), store.blob(b"dir/hello.txt")
    legacy = store.files({"old.txt": b"old\n", "empty": b""}, legacy=True)
    below = store.tree([("blob", "hello.txt", hello, "regular"), ("blob", "chunked", chunked, "regular")])
    entries = [
        ("tree", "dir", below, "tree"),
        ("blob", "run", run, "executable"),
        ("blob", "to", link, "symlink"),
    ]
    root = store.tree([*entries, ("tree", "legacy", legacy, "tree")])
    store.commit(root, parent=first, message="second")
    return Path(store.close())


def large(repo: Path, files: int, seed: int = 1) -> list[str]:
    """A store of one commit with `files` files of some 100 to 2,000 bytes in directories of about 50; the
    paths.
    """
    build = builder()
    rng = random.Random(seed)
    words = [bytes(rng.choices(b"etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(2000)]
    paths = [
        f"pkg{n // 5000:03d}/mod{n // 500 % 10:02d}/part{n // 50 % 10}/file{n:06d}.txt" for n in range(files)
    ]
    content = {
        path: b" ".join(rng.choices(words, k=rng.randint(15, 300))) + b"\n%d\n" % number
        for number, path in enumerate(paths)
    }
    store: Any = build.Store(repo)
    store.commit(store.files(content))
    store.close()
    return paths
