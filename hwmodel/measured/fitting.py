"""Which measured rows a fit uses, and the device file that comes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hwmodel.device.kernel.facts import listed_format
from hwmodel.errors import ParameterError, suggestion
from hwmodel.graph.demand import Gemm
from hwmodel.measured import constants
from hwmodel.measured.calibrate import ROWS_PER_CONSTANT, Timed, different
from hwmodel.measured.case import Skip
from hwmodel.measured.validate import measured_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hwmodel.config.measured import Sources
    from hwmodel.device import Device
    from hwmodel.measured.calibrate import Calibration
    from hwmodel.measured.rows import Row
    from hwmodel.measured.validate import SuiteKind

_FITTED_SPLITS: Final = ("fit", "")


@dataclass(frozen=True, slots=True)
class Picked:
    """Rows of one machine."""

    fit: tuple[Timed, ...]
    held_out: tuple[Timed, ...]
    """Rows that the file keeps for judging."""
    skipped: Mapping[str, int]


def pick(
    kind: SuiteKind,
    rows: Sequence[Row],
    device: Device,
    sources: Sources,
    *,
    machine: str | None,
    source: str | None,
    form: str | None,
    shortest_seconds: float,
) -> Picked:
    """The rows that may be used to calibrate ``device``.

    Args:
        kind: the suite of ``rows``.
        rows: measured rows.
        device: what they are run on.
        sources: who measured, and how.
        machine: what the rows call the device; None where they name one only, or where ``sources`` says which.
        source: whose rows; None for all.
        form: format of the operands, as results name it; None for all.
        shortest_seconds: rows that took less are left out.

    Raises:
        ParameterError: the rows name several devices and none was picked, or nothing is left.
    """
    chosen = [row for row in rows if source is None or row.source == source]
    if not chosen:
        known = {row.source for row in rows}
        raise ParameterError("--source", f"no row is of {source!r}{suggestion(str(source), known)}")
    names = list(dict.fromkeys(row.device for row in chosen))
    if machine is not None and machine not in names:
        raise ParameterError("--machine", f"no row is of {machine!r}{suggestion(machine, names)}")
    considered = len(chosen)
    if machine is not None:
        chosen = [row for row in chosen if row.device == machine]
    elif mapped := [row for row in chosen if sources.machine(row.source, row.device) == device.name]:
        chosen = mapped
    elif len(names) > 1:
        raise ParameterError("--machine", f"rows name {len(names)} devices, pick one: {', '.join(names)}")
    fit, held_out, skipped = list[Timed](), list[Timed](), Counter[str]()
    if others := considered - len(chosen):
        skipped["of other devices"] = others
    for row in chosen:
        seconds = measured_seconds(row, kind, sources, shortest_seconds)
        if sources.knows(row.source) and sources.role(row.source) != "fit":
            seconds = Skip(f"of a source that is never fitted ({sources.role(row.source)})")
        if isinstance(seconds, Skip):
            skipped[seconds.reason] += 1
            continue
        case = kind.case(row, device, sources)
        if isinstance(case, Skip):
            skipped[case.reason] += 1
            continue
        if form is not None and case.format != form:
            skipped[f"in {case.format}"] += 1
            continue
        timed = Timed(case.demand, seconds, sources.treatment(row.source, kind.name, row.device))
        (fit if row.split in _FITTED_SPLITS else held_out).append(timed)
    if not fit:
        aside = Counter({"kept aside, with a split other than 'fit' or blank": len(held_out)})
        reasons = "; ".join(f"{count} {reason}" for reason, count in (+aside + skipped).items())
        raise ParameterError("rows", f"must be at least {ROWS_PER_CONSTANT} that can be fitted, got none ({reasons})")
    return Picked(tuple(fit), tuple(held_out), dict(sorted(skipped.items())))


def usual(device: Device, rows: Sequence[Timed]) -> tuple[str, ...]:
    """As many constants as ``rows`` support, what matters most first.

    Raises:
        ParameterError: they support none.
    """
    counted = Counter(
        listed_format(device, name)
        for row in rows
        if isinstance(row.demand, Gemm)
        for name in dict.fromkeys((row.demand.a_format, row.demand.b_format))
    )
    given = different(rows)
    most = given // ROWS_PER_CONSTANT
    if not most:
        raise ParameterError(
            "rows", f"must be of at least {ROWS_PER_CONSTANT} different kernels to fit a constant, got {given}"
        )
    formats = [name for name, _ in counted.most_common()]
    return constants.usual(device, formats)[:most]


def device_file(base: str, found: Calibration, *, of: str) -> str:
    """YAML of a device that extends ``base`` with what was fitted.

    Args:
        base: name or path of the device the fit started from.
        found: what was fitted.
        of: what it was fitted to, for the source of each value.
    """
    said = f"fitted by hwmodel calibrate to {found.rows} rows of {of}: mean error {found.after.mean:.1f} %"
    tree: dict[str, object] = {}
    for each in found.fitted:
        if not each.constant.of_device:
            continue
        *parents, last = each.constant.path.split(".")
        place = tree
        for parent in parents:
            inner = place.setdefault(parent, {})
            assert isinstance(inner, dict)  # paths of constants do not end within one another
            place = inner
        number = f"{each.after:.0f}" if each.constant.whole else f"{each.after:.4g}"
        if each.constant.unit == "s":
            number = f"{1e6 * each.after:.4g} us"
        place[last] = f"{{value: {number}, source: {quoted(said)}, confidence: F}}"
    lines = ["# Written by hwmodel calibrate.", f"extends: {quoted(base)}", *_lines(tree, 0)]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """``text`` as a double-quoted scalar of YAML."""
    return '"' + "".join(_escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


def _lines(tree: Mapping[str, object], depth: int) -> list[str]:
    lines = []
    for key, inner in tree.items():
        if isinstance(inner, dict):
            lines += [f"{'  ' * depth}{key}:", *_lines(inner, depth + 1)]
        else:
            lines.append(f"{'  ' * depth}{key}: {inner}")
    return lines
