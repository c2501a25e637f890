"""`interlingua reprice`: the costs of stored records, computed again."""

from __future__ import annotations

from typing import Any, BinaryIO

import click

from interlingua.cli.output import Column, Output, shown_json, with_output

_COLUMNS = (
    Column("provider", "provider"),
    Column("model", "model"),
    Column("calls", "calls", right=True),
    Column("before", "$ before", right=True, is_money=True),
    Column("now", "$ now", right=True, is_money=True),
)


@click.command("reprice")
@click.argument("file", type=click.File("rb"), default="-")
@click.option(
    "--prices",
    type=click.File("rb"),
    help='JSON: prices by model, such as {"gpt-5.2": {"input": 1.25, "output": 10}}.',
)
@click.option("--records", is_flag=True, help="Print the records with their new costs, as lines.")
@with_output
def command(out: Output, file: BinaryIO, *, prices: BinaryIO | None, records: bool) -> None:
    r"""
    Compute the costs of stored calls again, with the prices of the catalog or of --prices.

    FILE has a JSON array, or a JSON object on each line, each with `provider`, `model` and `usage`;
    `-` is stdin.

    \b
    interlingua reprice calls.jsonl --prices contract.json
    """
    from interlingua.catalog import reprice
    from interlingua.wire.json_text import loads

    given = _read(file.read())
    priced = reprice(given, None if prices is None else loads(prices.read()))
    if records:
        for record in priced:
            out.line(shown_json(_line(record)))
        return
    out.table(_COLUMNS, _sums(given, priced), empty="The file has no records.")


def _read(data: bytes) -> list[Any]:
    from interlingua.wire.json_text import loads

    if data.lstrip().startswith(b"["):
        found: list[Any] = loads(data)
    else:
        found = [loads(line) for line in data.splitlines() if line.strip()]
    for number, record in enumerate(found):
        if not isinstance(record, dict):
            raise click.ClickException(f"Record {number + 1} is no object.")
    return found


def _line(record: Any) -> str:
    import msgspec

    return msgspec.json.encode(record).decode()


def _sums(given: list[Any], priced: list[Any]) -> list[dict[str, Any]]:
    import msgspec

    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for old, new in zip(given, priced, strict=True):
        key = (str(old.get("provider") or ""), str(old.get("model") or ""))
        empty = {"provider": key[0], "model": key[1], "calls": 0, "before": None, "now": None}
        row = rows.setdefault(key, {**empty, "unpriced": 0})
        row["calls"] += 1
        row["before"] = _add(row["before"], _total(msgspec.to_builtins(old)))
        now = _total(msgspec.to_builtins(new))
        row["now"] = _add(row["now"], now)
        row["unpriced"] += now is None
    return list(rows.values())


def _total(record: dict[str, Any]) -> float | None:
    cost = record.get("cost")
    value = cost.get("total") if isinstance(cost, dict) else cost
    return float(value) if isinstance(value, (int, float)) else None


def _add(total: float | None, cost: float | None) -> float | None:
    return total if cost is None else (total or 0.0) + cost
