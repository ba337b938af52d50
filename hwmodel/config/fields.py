"""Field types of our schemas: the type of the field decides how what was written is read.

A numeric field takes a number, or text that is a number as YAML 1.2 writes one, or (a quantity) text with a unit. A
whole number may be written with an exponent, ``1e12``, as long as it is whole; ``3.0`` and ``true`` are refused, as a
point means a measure, not a count. A text field takes back a number as it was written: ``695e0214``. Bounds given
here are checked in the base unit, and the error shows the value in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeGuard, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError, core_schema

from hwmodel.config.document import written
from hwmodel.errors import ParameterError
from hwmodel.units import WHOLE_UNITS, parse_number, parse_quantity, quantity_rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

SAID: Final = "hwmodel"
"""Type of pydantic errors whose message is already in our words."""
_SHOWN = 80


class Schema(BaseModel):
    """Base of every model: frozen, strict, nothing unknown, nothing infinite."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )


N = TypeVar("N", int, float)

LARGEST: Final = 1e21
SMALLEST: Final = 1e-15
"""No quantity of a machine or a model is beyond these; what is would overflow or round away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of a number, in its base unit."""

    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None

    def whole(self, read: Callable[[Any], object]) -> core_schema.CoreSchema:
        """A schema of ints made by ``read``."""
        limits: dict[str, Any] = {name: int(limit) for name, limit in self._given().items()}
        return core_schema.no_info_before_validator_function(read, core_schema.int_schema(strict=True, **limits))

    def real(self, read: Callable[[Any], object]) -> core_schema.CoreSchema:
        """A schema of finite floats made by ``read``."""
        inner = core_schema.float_schema(strict=True, allow_inf_nan=False, **self._given())
        return core_schema.no_info_before_validator_function(read, inner)

    def _given(self) -> dict[str, Any]:
        """The limits there are."""
        limits = {"gt": self.gt, "ge": self.ge, "lt": self.lt, "le": self.le}
        return {name: limit for name, limit in limits.items() if limit is not None}


@dataclass(frozen=True, slots=True)
class Quantity(Bounds):
    """``Annotated[float, Quantity("bytes/s", gt=0)]``: a number in the base unit, or text such as ``1.6 TB/s``.

    Bytes, bits, Hz and FLOP give ints, the other units floats.
    """

    unit: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return (self.whole if self.unit in WHOLE_UNITS else self.real)(self.read)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"type": "string", "description": f"with a unit of {self.unit}"}]}

    def read(self, value: object) -> float:
        """The value in the base unit."""
        if not is_number(value) and not isinstance(value, str):
            raise said(f"{quantity_rule(self.unit)}, got {seen(value)}")
        try:
            return _bounded(parse_quantity(_plain(value), self.unit), value)
        except ParameterError as error:
            raise said(error.message) from None


@dataclass(frozen=True, slots=True)
class Whole(Bounds):
    """``Annotated[int, Whole(ge=1)]``: a whole number without a unit."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return self.whole(self.read)

    def read(self, value: object) -> int:
        """The whole number."""
        text = written(value) if is_number(value) else value
        exact = parse_number(text) if isinstance(text, str) else None
        if isinstance(value, int) and not isinstance(value, bool):
            return _bounded(int(value), value)
        if not isinstance(text, str) or exact is None or exact.denominator != 1 or _has_bare_point(text):
            raise said(f"must be a whole number, got {seen(value)}")
        return _bounded(exact.numerator, value)


@dataclass(frozen=True, slots=True)
class Real(Bounds):
    """``Annotated[float, Real(ge=0, le=1)]``: a finite number without a unit."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return self.real(self.read)

    def read(self, value: object) -> float:
        """The number."""
        exact = parse_number(value) if isinstance(value, str) else None
        number = value if is_number(value) else exact
        try:
            read = math.nan if number is None else float(number)
        except OverflowError:
            read = math.inf
        if not math.isfinite(read):
            raise said(f"must be a finite number, got {seen(value)}")
        return _bounded(read, value)


def _bounded(number: N, value: object) -> N:
    """The number, if one can compute with it and with products of it."""
    if abs(number) > LARGEST or 0 < abs(number) < SMALLEST:
        raise said(f"must be 0 or between {SMALLEST:g} and {LARGEST:g} in size, got {seen(value)}")
    return number


def _text(value: object) -> object:
    """Text; a number becomes the text it was written as."""
    return written(value) if is_number(value) else value


Integer = Annotated[int, Whole()]
"""Any whole number."""
Count = Annotated[int, Whole(ge=0)]
PositiveInteger = Annotated[int, Whole(ge=1)]
Number = Annotated[float, Real()]
"""Any finite number."""
Ratio = Annotated[float, Real(ge=0, le=1)]
"""A fraction of something, 0 to 1."""
Text = Annotated[str, BeforeValidator(_text)]
"""Text, also where it looks like a number; not null, not true or false."""
Bytes = Annotated[int, Quantity("bytes", ge=0)]
PositiveBytes = Annotated[int, Quantity("bytes", gt=0)]
BytesPerSecond = Annotated[float, Quantity("bytes/s", gt=0)]
FlopsPerSecond = Annotated[float, Quantity("FLOP/s", gt=0)]
Hertz = Annotated[int, Quantity("Hz", gt=0)]
Seconds = Annotated[float, Quantity("seconds", ge=0)]


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether this is an int or float and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def said(message: str) -> PydanticCustomError:
    """A pydantic error that ``problems`` prints as it is."""
    return PydanticCustomError(SAID, "{message}", {"message": message})


def seen(value: object) -> str:
    """A value as messages show it, in YAML's words and not too long."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, tuple | list):
        return "a sequence"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _plain(value: float | str) -> float | str:
    """A number as written, exactly if it is whole: a float cannot hold 1e23, an int can."""
    exact = parse_number(written(value)) if isinstance(value, float) else None
    return exact.numerator if exact is not None and exact.denominator == 1 else value


def _has_bare_point(text: str) -> bool:
    """Whether a number has a point and no exponent, as a measure has and a count has not."""
    return "." in text and "e" not in text.casefold()
