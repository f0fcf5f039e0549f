"""`oakledger schema`: complete, explained, and true of what ingest takes."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import pytest

from ledger.cli.root import main
from ledger.decode import decode
from ledger.errors import BadEventError
from ledger.schema import kinds

SAMPLES = pathlib.Path(__file__).resolve().parents[1] / "data/events/v1"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["schema", *arguments])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def holds(schema: dict[str, Any], root: dict[str, Any], value: Any) -> bool:
    """A validator of the parts of JSON Schema that are used here, written apart from the decoder."""
    if "$ref" in schema:
        return holds(root["$defs"][schema["$ref"].rpartition("/")[2]], root, value)
    if "anyOf" in schema:
        return any(holds(option, root, value) for option in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kind = {dict: "object", list: "array", str: "string", int: "integer", bool: "boolean", type(None): "null"}
    if kind.get(type(value)) != schema["type"]:
        return False
    if isinstance(value, dict):
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        return (
            all(name in value for name in schema.get("required", ()))
            and len(value) <= schema.get("maxProperties", 10**9)
            and all(
                holds(known[n], root, v) if n in known else others and holds(others, root, v)
                for n, v in value.items()
            )
        )
    if isinstance(value, list):
        low, high = schema.get("minItems", 0), schema.get("maxItems", 10**9)
        return low <= len(value) <= high and all(holds(schema["items"], root, v) for v in value)
    if isinstance(value, str):
        fits = re.search(schema.get("pattern", ""), value) is not None
        return fits and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 10**9)
    if isinstance(value, int) and not isinstance(value, bool):
        return (
            value >= schema.get("minimum", value)
            and value <= schema.get("maximum", value)
            and value < schema.get("exclusiveMaximum", value + 1)
        )
    return True


def test_the_schema_of_all_kinds_has_every_kind_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys)
    assert (status, err) == (0, "")
    schema = json.loads(out)
    assert schema["$schema"].endswith("2020-12/schema")
    assert set(schema["discriminator"]["mapping"]) == set(kinds())
    trial = schema["$defs"]["TrialRecorded"]["properties"]["reached_head"]
    assert trial["description"].startswith("Whether the run got as far as a committed HEAD")


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.*.json")), ids=lambda p: p.stem)
def test_the_schema_is_true_of_every_stored_sample(
    capsys: pytest.CaptureFixture[str], path: pathlib.Path
) -> None:
    kind = path.name.partition(".")[0]
    schema = json.loads(run(capsys, "--kind", kind)[1])
    event = json.loads(path.read_bytes())
    assert holds(schema, schema, event)
    for name, value in event.items():
        wrong: Any = 5 if isinstance(value, str) else "x y"
        damaged = {**event, name: wrong}
        assert not holds(schema, schema, damaged), name
        with pytest.raises(BadEventError):
            decode(json.dumps(damaged).encode())
    assert not holds(schema, schema, {**event, "extra": 1})


def test_one_kind_may_be_named_with_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--kind", "trial_recorded") == run(capsys, "--kind", "trial_recorded/1")


def test_an_unknown_kind_is_told_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "--kind", "lunch\n")
    assert (status, out) == (2, "")
    assert "'lunch\\n' is not known" in err and "trial_recorded/1" in err and err.count("\n") == 1


def test_the_row(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--row")
    assert status == 0
    assert json.loads(out)["$defs"]["Row"]["properties"]["row"] == {"enum": ["oakledger-row/1"]}
    assert run(capsys, "--row", "--kind", "trial_recorded")[0] == 2
