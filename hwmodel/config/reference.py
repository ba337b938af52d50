"""The reference of what files may say, as markdown, written from the schemas so that it cannot be out of date."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

from pydantic_core import PydanticUndefined

from hwmodel.config.described import field_docs, summary
from hwmodel.config.device import CONFIDENCE
from hwmodel.config.device_schema import DeviceSchema
from hwmodel.config.extends import KEY, SAYS
from hwmodel.config.fields import Bounds, Quantity, Real, Schema, Whole
from hwmodel.config.generated import OneOf, ScaleLayoutSchema, shown
from hwmodel.config.graph import op_names, params_schema
from hwmodel.config.recipe import presets
from hwmodel.config.shorthand import SHORTHANDS
from hwmodel.config.software import SECTIONS, SoftwareSchema
from hwmodel.config.walk import flatten
from hwmodel.config.workload_schema import EnvelopeSchema, HandSchema, TrainingSchema
from hwmodel.ops import OPS
from hwmodel.workload.hand import LINEAR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pydantic.fields import FieldInfo

_LIMITS: Mapping[str, str] = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_HEAD = "| key | holds | default | meaning |\n|---|---|---|---|"
_PLAIN: Mapping[object, str] = {int: "whole number", float: "number", bool: "true or false", object: "anything"}
_MAPPING = "mapping to: "
_LISTED = 8
"""Most names that a table lists."""


_EXTENDS: Final = """`extends` starts from another {kind} file, by name, or by a path from the folder of this one:

```yaml
extends: {name}
{key}
```

Mappings merge key by key; sequences and single values are replaced. A base may extend another. The rules hold for the
whole, so a key that is required may stand in the base alone.
"""
_EXTENDS_ROW: Final = (f"`{KEY}`", "text", "", SAYS)


def workload_reference() -> str:
    """Every key of a workload file."""
    sections = ", ".join(f"`{section}` ({key})" for section, key in sorted(SHORTHANDS.items()))
    common = tuple(EnvelopeSchema.model_fields)
    training, hand = (_table(_rows(model, without=common)) for model in (TrainingSchema, HandSchema))
    ops = "\n".join(_op(name) for name in op_names() if name != LINEAR)
    named = ", ".join(f"`{name}`" for name in presets())
    return f"""## Workload files

`workloads/NAME.yaml`, or any path. Four sections may be written as a text alone, which then stands for the key in
brackets: {sections}.

`--set path=value` changes any key by its path. The name alone of a recipe, schedule or software set changes that name
and keeps the file's other keys of the section.

### Every kind

Presets: {named}. The defaults of the axes below hold where neither the preset nor the file says more.

{_table(_rows(EnvelopeSchema))}

### kind: training

{training}

### kind: graph

Tensors and ops by hand, on one device. Ops may stand in any order. A tensor under `tensors` that an op makes is
checked against what it makes; any other is there before the first op.

{hand}

`op: {LINEAR}` reads x (T, K) and w (N, K) and makes y (T, N). The recipe decides its casts. With its backward it also
reads y.grad, which is there before the first op if nothing makes it, and makes x.grad and, in fp32, w.grad. In a trace
its kernels are called after what they make or cast: y.fprop, x.grad.dgrad, w.grad.wgrad, x.quantise, y.grad.quantise.

Every other op, with its `params` (a default follows the equals sign):

| op | params |
|---|---|
{ops}
"""


def device_reference() -> str:
    """Every key of a device file."""
    levels = "\n".join(f"| {letter} | {meaning} |" for letter, meaning in CONFIDENCE.items())
    return f"""## Device files

`devices/NAME.yaml`, or any path.

A value may be written alone, or as a fact that says where it is from and how sure it is:

```yaml
clock_hz: 1.65 GHz
cache_bytes: {{value: 128 MB, source: "vendor's platform table", confidence: V}}
```

`source` and `confidence` may each be left out, and may stand around a whole sequence or mapping, for all in it. A fact
does not change a result; reports list every number with its source, and one that states none counts as U.
`--set device.clock_hz=1.8 GHz` replaces a value together with what was said about it, and lists it as A.

| confidence | meaning |
|---|---|
{levels}

{_EXTENDS.format(kind="device", name="npu", key="clock_hz: 1.8 GHz")}
A value written over the base's does not keep the base's source.

{_table([_EXTENDS_ROW, *_rows(DeviceSchema)])}
"""


def software_reference() -> str:
    """Every key of a software set."""
    return f"""## Software sets

`workloads/software/NAME.yaml`, or any path. It holds no rate and no time. An entry may be written alone, or with the
release or change that introduced it:

```yaml
switches:
  scales_in_gemm_order: {{value: true, since: "release or change"}}
```

{_EXTENDS.format(kind="software", name="mature", key="counts: {amax_launches: 1}")}
{_table([_EXTENDS_ROW, *_software_rows()])}
"""


def file_reference() -> str:
    """The whole page."""
    return (
        "# What files may say\n\n"
        "Written from the schemas by `hwmodel.config.reference`; a test holds this page to them, and\n"
        "`pytest tests/config/test_reference.py --update-golden` writes it anew.\n\n"
        "Numbers are in the base unit, or text with a unit (`1.6 TB/s`, `64 GiB`, `1.8 GHz`): k M G T are powers of\n"
        "ten, Ki Mi Gi Ti powers of two, B is byte and b is bit. In a path, 0 stands for any place of a sequence and\n"
        "NAME for any key of a mapping.\n\n"
        f"{workload_reference()}\n{device_reference()}\n{software_reference()}"
    )


def _table(rows: Iterable[tuple[str, str, str, str]]) -> str:
    """Rows as a markdown table."""
    lines = ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
    return "\n".join([_HEAD, *lines])


def _rows(model: type[Schema], prefix: str = "", without: Sequence[str] = ()) -> Iterator[tuple[str, str, str, str]]:
    """(path, what it holds, default, meaning) of every key, sections followed by their own keys."""
    docs = field_docs(model)
    for name, info in model.model_fields.items():
        if name in without:
            continue
        path = f"{prefix}{info.alias or name}"
        inner, suffix = _inner(info)
        says = info.description or docs.get(name) or (summary(inner) if inner is not None else "")
        yield f"`{path}`", _holds(info), _default(info), says.replace("``", "`")
        if inner is not None:
            yield from _rows(inner, f"{path}{suffix}.")


def _software_rows() -> Iterator[tuple[str, str, str, str]]:
    """Rows of a software set, sections followed by the names they may have."""
    for key, holds, default, says in _rows(SoftwareSchema):
        yield key, holds, default, says
        section = key.strip("`")
        for name, meaning in SECTIONS.get(section, {}).items():
            yield f"`{section}.{name}`", holds.removeprefix(_MAPPING), "", meaning


def _inner(info: FieldInfo) -> tuple[type[Schema] | None, str]:
    """The model under a key, and how a path goes there through a mapping or sequence."""
    for kind, _ in flatten(info.annotation):
        for member, suffix in ((kind, ""), *_members(kind)):
            if isinstance(member, type) and issubclass(member, Schema):
                return member, suffix
    return None, ""


def _members(kind: Any) -> Iterator[tuple[Any, str]]:
    """What a mapping or sequence holds."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple:
        yield args[0], ".0"
    elif origin is dict:
        yield args[1], ".NAME"


def _default(info: FieldInfo) -> str:
    """What holds where a key is not written."""
    if info.is_required():
        return "required"
    if info.default is PydanticUndefined or info.default is None or isinstance(info.default, Schema | tuple):
        return ""
    return f"`{shown(info.default)}`" if info.default != "" else ""


def _holds(info: FieldInfo) -> str:
    """What a key holds, in words."""
    limits = [item for item in info.metadata if isinstance(item, Bounds | OneOf)]
    return _kind(info.annotation, limits)


def _kind(annotation: Any, metadata: Iterable[object]) -> str:
    """A type in words."""
    said = next((words for item in metadata if (words := _limited(item))), "")
    origin, args = get_origin(annotation), get_args(annotation)
    members = [member for member in args if member is not type(None)]
    if said:
        pass
    elif hasattr(annotation, "__metadata__"):
        said = _kind(args[0], annotation.__metadata__)
    elif origin is tuple:
        said = f"sequence of: {_kind(args[0], ())}"
    elif origin is dict:
        said = f"{_MAPPING}{_kind(args[1], ())}"
    elif origin is Literal:
        said = ", ".join(map(str, args))
    elif members:
        said = " or ".join(_kind(member, ()) for member in members)
    elif isinstance(annotation, type) and issubclass(annotation, Schema):
        said = "mapping"
    return said or _PLAIN.get(annotation, "text")


def _limited(item: object) -> str:
    """What the metadata of a type adds, in words."""
    if isinstance(item, OneOf):
        return ", ".join(item.names()) if len(item.names()) <= _LISTED else f"name of {item.family or 'one'}"
    if isinstance(item, Quantity):
        return f"{item.unit}{_limits(item)}"
    if isinstance(item, Whole | Real):
        return f"{'whole number' if isinstance(item, Whole) else 'number'}{_limits(item)}"
    return ""


def _limits(bounds: Bounds) -> str:
    """The limits of a number."""
    said = [f"{sign} {limit:g}" for name, sign in _LIMITS.items() if (limit := getattr(bounds, name)) is not None]
    return f" {', '.join(said)}" if said else ""


def _op(name: str) -> str:
    """One line about an op's params."""
    params_type, schema = OPS.get(name).params_type, params_schema(name)
    defaults = {field.name: field.default for field in fields(params_type)}
    parts = []
    for key, info in schema.model_fields.items():
        layout = any(kind is ScaleLayoutSchema for kind, _ in flatten(info.annotation))
        holds = "{rows, columns, scale_format, powers_of_two}" if layout else _holds(info)
        default = defaults[key]
        end = "" if default in (MISSING, None, "") else f" = {shown(default)}"
        parts.append(f"`{key}` ({holds}{end})")
    says = summary(params_type).replace("``", "`").replace("|", "\\|")
    return f"| `{name}` | {' '.join((says, '; '.join(parts))).strip()} |"
