"""The cast of one tensor: which kernels make the copies its uses need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.errors import RefusedError
from hwmodel.ops.quantise import QuantiseParams
from hwmodel.recipes.copies import ROW_USES, LocalCopy
from hwmodel.recipes.timings import ScaleRequest
from hwmodel.units import ceil_div

if TYPE_CHECKING:
    from hwmodel.formats import ScaleLayout
    from hwmodel.recipes.copies import Place
    from hwmodel.recipes.lowering import Lowering


class Cast:
    """The cast of one tensor into one format and layout, for one or both directions."""

    def __init__(self, low: Lowering, tensor: str, name: str, *, role: str, layout: ScaleLayout, place: Place) -> None:
        """``name`` is the stem of what is added; ``role`` is x, w or g."""
        self.low = low
        self.tensor = tensor
        self.name = name
        self.role = role
        self.layout = layout
        self.label = place.label
        self.layer = place.layer
        self.gather = place.gather

    def copies(self, uses: tuple[str, ...]) -> dict[str, LocalCopy]:
        """Use -> copy, adding the kernels that make them."""
        columns = [use for use in uses if (self.role, use) not in ROW_USES]
        rows = [use for use in uses if (self.role, use) in ROW_USES]
        self._check_alignment(columns)
        if self.layout.per_tensor:
            return self._per_tensor(rows, columns)
        if self.layout.serves_both_directions:
            return self._square(uses)
        if self.layout.columns is None:
            return self._per_row(rows, columns)
        return self._per_block(rows, columns)

    def _check_alignment(self, columns: list[str]) -> None:
        spec = self.low.builder.spec(self.tensor)
        blocks = [("columns", spec.columns, self.layout.columns)]
        if columns:
            blocks.append(("rows", spec.rows, self.layout.columns))
        for axis, extent, block in blocks:
            if block is not None and extent % block:
                raise RefusedError(
                    "recipe.granularity",
                    f"tensor '{self.tensor}' has {extent} {axis} on each rank, which blocks of {block} elements do not "
                    f"divide; pad to {ceil_div(extent, block) * block} or change the layout",
                )

    def _quantise(self, suffix: str, params: QuantiseParams, encode: str, outputs: tuple[str, ...]) -> tuple[str, ...]:
        inputs = (self.tensor, encode) if encode else (self.tensor,)
        return self.low.builder.add(
            "quantise",
            params,
            inputs,
            outputs,
            name=f"{self.name}.quantise{suffix}",
            layer=self.layer,
            role=f"{self.label}.quantise",
        )

    def _request(self, layout: ScaleLayout, suffix: str = "") -> ScaleRequest:
        return ScaleRequest(
            self.tensor,
            f"{self.name}{suffix}",
            self.role,
            layout,
            self.gather is not None and self.gather.ranks > 1,
            self.label,
            self.layer,
        )

    @property
    def _format(self) -> str:
        return self.low.recipe.formats.of(self.role)

    @property
    def _margin_bits(self) -> int:
        return self.low.recipe.margin_bits

    def _per_tensor(self, rows: list[str], columns: list[str]) -> dict[str, LocalCopy]:
        low = self.low
        request = self._request(self.layout)
        scale = low.known_scale(request)
        local = self.gather is None or self.gather.ranks == 1
        second = bool(rows and columns) and local and not low.target.any_operand_layout
        params = QuantiseParams(
            format=self._format,
            layout=self.layout,
            scale_known=True,
            with_amax=scale.cast_finds_amax,
            transposed_copy=second,
            margin_bits=self._margin_bits,
        )
        outputs = [f"{self.name}.q"]
        outputs += [f"{self.name}.q.turned"] if second else []
        outputs += [f"{self.name}.amax"] if scale.cast_finds_amax else []
        self._quantise("", params, scale.encode, tuple(outputs))
        if scale.cast_finds_amax:
            low.note_amax(f"{self.name}.amax", self.role)
        plain = LocalCopy(f"{self.name}.q", scale.decode, self.layout)
        turned = LocalCopy(f"{self.name}.q.turned", scale.decode, self.layout, turned=True) if second else plain
        return {**dict.fromkeys(rows, plain), **dict.fromkeys(columns, turned)}

    def _square(self, uses: tuple[str, ...]) -> dict[str, LocalCopy]:
        """Square blocks: data and scales transpose exactly, one copy serves both directions."""
        params = QuantiseParams(format=self._format, layout=self.layout, margin_bits=self._margin_bits)
        data, scale = self._quantise("", params, "", (f"{self.name}.q", f"{self.name}.q.scale"))
        copy = LocalCopy(data, scale, self.layout, in_gemm_order=self._ordered)
        return dict.fromkeys(uses, copy)

    def _per_row(self, rows: list[str], columns: list[str]) -> dict[str, LocalCopy]:
        """A row fits on chip, so its direction is one kernel; the other needs the column maxima first."""
        found: dict[str, LocalCopy] = {}
        if rows:
            params = QuantiseParams(format=self._format, layout=self.layout, margin_bits=self._margin_bits)
            data, scale = self._quantise("", params, "", (f"{self.name}.q", f"{self.name}.q.scale"))
            found.update(dict.fromkeys(rows, LocalCopy(data, scale, self.layout)))
        if columns:
            known = self.low.known_scale(self._request(self.layout.turned(), ".column"))
            params = QuantiseParams(format=self._format, layout=self.layout, directions="column", scale_known=True)
            (data,) = self._quantise(".column", params, known.encode, (f"{self.name}.qc",))
            found.update(dict.fromkeys(columns, LocalCopy(data, known.decode, self.layout, turned=True)))
        return found

    def _per_block(self, rows: list[str], columns: list[str]) -> dict[str, LocalCopy]:
        """Blocks along the contraction axis: two copies from high precision, by one kernel or two."""
        one_kernel = self.low.target.switch("one_kernel_for_both_directions")
        row = (f"{self.name}.q", f"{self.name}.q.scale")
        column = (f"{self.name}.qc", f"{self.name}.qc.scale")
        if rows and columns and one_kernel:
            params = self._block_params("both")
            self._quantise("", params, "", (row[0], column[0], row[1], column[1]))
        else:
            if rows:
                params = self._block_params("row")
                self._quantise("", params, "", row)
            if columns:
                params = self._block_params("column")
                self._quantise(".column", params, "", column)
        found = dict.fromkeys(rows, LocalCopy(*row, self.layout, in_gemm_order=self._ordered))
        found.update(dict.fromkeys(columns, LocalCopy(*column, self.layout, turned=True, in_gemm_order=self._ordered)))
        return found

    def _block_params(self, directions: str) -> QuantiseParams:
        return QuantiseParams(
            format=self._format,
            layout=self.layout,
            directions=directions,
            margin_bits=self._margin_bits,
            scales_in_gemm_order=self._ordered,
        )

    @property
    def _ordered(self) -> bool:
        """The quantiser writes scales as the GEMM reads them: native blocks only, and never for a tensor that travels.

        Where vector lanes apply the scales there is no order to keep; where the target takes another scale format,
        every operand's scales pass a conversion kernel.
        """
        low = self.low
        if low.emulated(self.layout):
            return False
        if not low.target.scales_natively(self.layout.columns, self.layout.scale_format):
            return True
        travels = self.gather is not None and self.gather.ranks > 1
        return low.target.switch("scales_in_gemm_order") and not travels
