"""The schemas of tools and formats, as an encoder sends them."""

from __future__ import annotations

from interlingua.spec.content import Json
from interlingua.wire.carry import Losses
from interlingua.wire.schema.narrow import narrow
from interlingua.wire.schema.root import object_root
from interlingua.wire.schema.rules import Rules

_MOST = 5  # losses that one warning lists


def encode_schema(
    schema: Json, rules: Rules, losses: Losses, path: str, *, strict: bool | None
) -> tuple[Json, bool | None]:
    """
    The schema as the target takes it, and the strictness to ask for.

    A strict target is obeyed only where strictness is asked for. What cannot be strict without
    changing its meaning is sent as it is, not strict, with a warning; what the target cannot
    check is said in descriptions, with a warning. A mere change of words is no loss.
    """
    if rules.strict and not strict:
        return schema, strict
    narrowed = narrow(schema, rules)
    if not narrowed.strict_possible:
        why = f"{rules.name} would change its meaning ({narrowed.reason})"
        losses.add("schema_not_strict", why, path)
        return schema, False
    _warn(narrowed.losses, rules, losses, path)
    return narrowed.schema, strict


def encode_parameters(
    schema: Json, rules: Rules, losses: Losses, path: str, *, strict: bool | None
) -> tuple[Json, bool | None]:
    """The same for a tool, the root of whose schema has to be an object."""
    made = object_root(schema)
    _warn(made.losses, rules, losses, path)
    return encode_schema(made.schema, rules, losses, path, strict=strict)


def _warn(lost: tuple[str, ...], rules: Rules, losses: Losses, path: str) -> None:
    if lost:
        more = f" and {len(lost) - _MOST} more" if len(lost) > _MOST else ""
        said = "; ".join(lost[:_MOST])
        losses.add("schema_narrowed", f"{rules.name} does not check all of it: {said}{more}", path)
