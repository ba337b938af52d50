"""Kinds of work: one file each, registered by the import lines below."""

from __future__ import annotations

from hwmodel.ops import amax as amax
from hwmodel.ops import attention as attention
from hwmodel.ops import collective as collective
from hwmodel.ops import columns as columns
from hwmodel.ops import cross_entropy as cross_entropy
from hwmodel.ops import dequantise as dequantise
from hwmodel.ops import elapsed as elapsed
from hwmodel.ops import embedding as embedding
from hwmodel.ops import fused as fused
from hwmodel.ops import gemm as gemm
from hwmodel.ops import optimizer_step as optimizer_step
from hwmodel.ops import quantise as quantise
from hwmodel.ops import rearrange_scales as rearrange_scales
from hwmodel.ops import residual_add as residual_add
from hwmodel.ops import rmsnorm as rmsnorm
from hwmodel.ops import rope as rope
from hwmodel.ops import swiglu as swiglu
from hwmodel.ops import transpose as transpose
from hwmodel.ops import update_scale as update_scale
from hwmodel.ops import views as views
from hwmodel.ops.base import KINDS as KINDS
from hwmodel.ops.base import OPS as OPS
from hwmodel.ops.base import Op as Op
from hwmodel.ops.base import demand_node as demand_node
from hwmodel.ops.base import infer_node as infer_node
from hwmodel.ops.build import Builder as Builder
