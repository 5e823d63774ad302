"""Named tuples of arrays that kernels hand on by their address.

Numba hands a named tuple on field by field, and an array as seven numbers: a call with fifty arrays takes longer to
compile than what it calls, and longer to make. A `Reference` is one pointer. Its fields are read where they are used;
a field that is a named tuple itself is a reference again. In a hot loop, read the arrays before the loop: a store may
have changed them, as far as the compiler knows.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, register_model


class Reference(types.Type):
    """The address of a named tuple."""

    def __init__(self, target: Any) -> None:
        self.target = target
        super().__init__(name=f"Reference({target.name})")

    def field(self, name: str) -> tuple[int, Any]:
        """The index of a field, and its type."""
        index = self.target.fields.index(name)
        return index, self.target[index]


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, cgutils.voidptr_t)


@intrinsic
def reference(context: Any, value: Any) -> Any:
    """The address of a named tuple, for as long as the function that calls this runs."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(cgutils.alloca_once_value(builder, arguments[0]), cgutils.voidptr_t)

    return Reference(value)(value), written


@infer_getattr
class _Fields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, kind: Reference, name: str) -> Any:  # type: ignore[override]
        if name not in kind.target.fields:
            return None
        _, field = kind.field(name)
        return Reference(field) if isinstance(field, types.BaseNamedTuple) else field


@lower_getattr_generic(Reference)
def _read_field(context: Any, builder: Any, kind: Reference, value: Any, name: str) -> Any:
    index, field = kind.field(name)
    layout = context.get_value_type(kind.target)
    number = ir.IntType(32)
    address = builder.gep(builder.bitcast(value, layout.as_pointer()), [number(0), number(index)])
    if isinstance(field, types.BaseNamedTuple):
        return builder.bitcast(address, cgutils.voidptr_t)
    return impl_ret_borrowed(context, builder, field, builder.load(address))
