"""Units of measure: reading quantities, exact conversions, and printing them with a unit.

Decimal prefixes k M G T are powers of ten, Ki Mi Gi Ti powers of two. Bytes (``B``) and bits (``b``) never mix.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final

from hwmodel.errors import ParameterError

FLOPS_PER_MAC: Final = 2
"""One multiply-accumulate is two floating-point operations."""
PICOSECONDS_PER_SECOND: Final = 10**12

_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_PREFIXES = {"": Fraction(1)} | {prefix: Fraction(scale) for prefix, scale in (_DECIMAL | _BINARY).items()}
_SUBSECONDS = {
    "": Fraction(1),
    "m": Fraction(1, 10**3),
    "u": Fraction(1, 10**6),
    "n": Fraction(1, 10**9),
    "p": Fraction(1, 10**12),
}
_SYMBOLS = {
    "bytes": ("B",),
    "bits": ("b", "bit", "bits"),
    "bytes/s": ("B/s",),
    "bits/s": ("b/s", "bit/s"),
    "Hz": ("Hz",),
    "seconds": ("s",),
    "FLOP": ("FLOP",),
    "FLOP/s": ("FLOP/s",),
}
_EXAMPLES = {
    "bytes": "64 GiB",
    "bits": "8 kbit",
    "bytes/s": "1.6 TB/s",
    "bits/s": "200 Gb/s",
    "Hz": "1.8 GHz",
    "seconds": "20 us",
    "FLOP": "2 TFLOP",
    "FLOP/s": "312 TFLOP/s",
}
UNITS: Final = tuple(_SYMBOLS)
"""The units ``parse_quantity`` reads."""
WHOLE_UNITS: Final = frozenset({"bytes", "bits", "Hz", "FLOP"})
"""Units whose quantities are counts and come back as exact ints; the others come back as floats."""

_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_QUANTITY = re.compile(rf"({_NUMBER.pattern})\s*(\S*)")
_TEXT_LIMIT = 100
_EXPONENT_LIMIT = 400
_BITS_PER_BYTE = 8
_PER_GROUP = 1000


def parse_number(text: str) -> Fraction | None:
    """The exact value of a number written as YAML 1.2 writes one, or None if ``text`` is not such a number.

    ``1e12``, ``1e+12``, ``1.0e12`` are the same number; ``017``, ``1_000``, ``12:30``, ``nan`` and ``inf`` are none. A
    number of over 100 characters or with an exponent beyond 400 is none either.
    """
    if len(text) > _TEXT_LIMIT or _NUMBER.fullmatch(text) is None:
        return None
    exponent = re.split("[eE]", text)[1:]
    if exponent and abs(int(exponent[0])) > _EXPONENT_LIMIT:
        return None
    return Fraction(text)


def parse_quantity(value: object, unit: str, *, field: str = "value") -> float | int:
    """A number in the base ``unit``, from a number or from text such as ``1.6 TB/s``.

    Bytes, bits, Hz and FLOP are counts: the result is an exact int and a fraction is refused. Rates and seconds come
    back as the nearest float, however they were written. Text without a unit is a number in the base unit. Sign and
    range are left to the caller. Seconds take the prefixes m u n p and no others.

    Args:
        value: what was written: a number or text.
        unit: one of ``UNITS``.
        field: name used in the error.

    Raises:
        ParameterError: not a finite number of this unit.
    """
    exact = _exact(value, unit, field)
    if unit in WHOLE_UNITS:
        if exact.denominator != 1:
            raise ParameterError(field, f"must be a whole number of {unit}, got {_shown(value)}")
        return exact.numerator
    try:
        return float(exact)
    except OverflowError:
        raise ParameterError(field, f"must be a finite number of {unit}, got {_shown(value)}") from None


def quantity_rule(unit: str) -> str:
    """What a quantity of ``unit`` must be, as errors say it."""
    return f"must be a number of {unit}, or text such as {_EXAMPLES[unit]!r}"


def ceil_div(a: int, b: int) -> int:
    """``a / b`` rounded up, exactly."""
    return -(-a // b)


def cycles_to_picoseconds(cycles: int, clock_hz: int) -> int:
    """Picoseconds that ``cycles`` of a clock take, rounded up to a whole one.

    Raises:
        ParameterError: negative cycles, a clock that is not positive, or either not an int.
    """
    if type(cycles) is not int or cycles < 0:
        raise ParameterError("cycles", f"must be a whole number >= 0, got {cycles!r}")
    if type(clock_hz) is not int or clock_hz <= 0:
        raise ParameterError("clock_hz", f"must be a whole number > 0, got {clock_hz!r}")
    return ceil_div(cycles * PICOSECONDS_PER_SECOND, clock_hz)


def seconds_to_picoseconds(seconds: float) -> int:
    """Picoseconds, rounded up, except that an excess of a few units in the last place of the float is dropped.

    So 1e-6 is 1,000,000 and 0.1 + 0.2 is the same as 0.3, whatever the float's error.

    Raises:
        ParameterError: negative, infinite or not a number.
    """
    if isinstance(seconds, bool) or not math.isfinite(seconds) or seconds < 0:
        raise ParameterError("seconds", f"must be a finite number >= 0, got {seconds!r}")
    exact = Fraction(seconds) * PICOSECONDS_PER_SECOND
    noise = Fraction(4 * math.ulp(float(seconds))) * PICOSECONDS_PER_SECOND
    whole = math.floor(exact)
    return whole if exact - whole <= min(noise, Fraction(1, 2)) else whole + 1


def format_bytes(count: float, *, binary: bool = False) -> str:
    """Bytes for people: ``83.00 GB``, or with ``binary`` ``77.30 GiB``."""
    base = 1024 if binary else _PER_GROUP
    names = ["B", "KiB", "MiB", "GiB", "TiB"] if binary else ["B", "kB", "MB", "GB", "TB"]
    if abs(count) < base and count == int(count):
        return f"{int(count)} B"
    power = 0
    while power < len(names) - 1 and round(abs(count) / base**power, 2) >= base:
        power += 1
    return f"{count / base**power:.2f} {names[power]}"


def format_seconds(seconds: float) -> str:
    """Seconds for people, in the unit that fits: ``1.230 ms``. Zero is ``0 s``."""
    if seconds == 0:
        return "0 s"
    names = ["ps", "ns", "us", "ms", "s"]
    scaled = seconds * PICOSECONDS_PER_SECOND
    power = 0
    while power < len(names) - 1 and round(abs(scaled) / _PER_GROUP**power, 3) >= _PER_GROUP:
        power += 1
    return f"{scaled / _PER_GROUP**power:.3f} {names[power]}"


def _exact(value: object, unit: str, field: str) -> Fraction:
    """The exact value in the base unit."""
    if unit not in _SYMBOLS:
        raise ParameterError("unit", f"must be one of {', '.join(UNITS)}, got {unit!r}")
    rule = quantity_rule(unit)
    if isinstance(value, str):
        return _exact_text(value, unit, field, rule)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ParameterError(field, f"{rule}, got {_shown(value)}")
    return Fraction(value)


def _exact_text(text: str, unit: str, field: str, rule: str) -> Fraction:
    """The exact value of a number with or without a unit behind it."""
    match = _QUANTITY.fullmatch(text.strip())
    number = parse_number(match[1]) if match is not None else None
    if match is None or number is None:
        raise ParameterError(field, f"{rule}, got {_shown(text)}")
    written = match[2]
    if not written:
        return number
    scale = _scale(written, unit)
    if scale is None:
        raise ParameterError(field, f"{rule}, got {_shown(text)}{_unit_hint(written, unit)}")
    return number * scale


def _scale(written: str, unit: str) -> Fraction | None:
    """The factor a written unit such as ``GiB`` stands for, or None if it does not measure ``unit``."""
    prefixes = _SUBSECONDS if unit == "seconds" else _PREFIXES
    for symbol in _SYMBOLS[unit]:
        if written.endswith(symbol) and written.removesuffix(symbol) in prefixes:
            return prefixes[written.removesuffix(symbol)]
    return None


def _unit_hint(written: str, unit: str) -> str:
    """What was probably meant by a unit that does not fit, as the tail of a message."""
    for other in UNITS:
        if other != unit and _scale(written, other) is not None:
            factor = f" ({_BITS_PER_BYTE} bits are 1 byte)" if {other[:3], unit[:3]} == {"bit", "byt"} else ""
            return f": that is {other}, not {unit}{factor}"
    prefixes = _SUBSECONDS if unit == "seconds" else _PREFIXES
    for fixed in (prefix + symbol for prefix in prefixes for symbol in _SYMBOLS[unit]):
        if fixed.casefold() == written.casefold():
            return f"; did you mean {fixed}{f' or Ki{fixed[1:]}' if fixed[0] == 'k' else ''}?"
    return ""


def _shown(value: object) -> str:
    """A value as an error shows it: not too long."""
    text = repr(value)
    return text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]}..."
