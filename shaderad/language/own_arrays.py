"""Annotations of arrays that only our own kernels have.

The kernel language has no 64-bit ints and no pointers between elements. These arrays have just
what the rasteriser needs of both, by atomics that every target has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shaderad.language.checked import KernelValue

    Greatest = Lists = KernelValue
else:
    from shaderad.ir.types import OF_OUR_KERNELS
    from shaderad.language.annotations import AnnotationForm

    Greatest, Lists = (AnnotationForm(access.value) for access in OF_OUR_KERNELS)

__all__ = ["Greatest", "Lists"]

# Greatest[uint2]: ``a[j] = sad.max(a[j], v)`` keeps the greatest pair, by `y`, then by `x`.
# Elements start at 0. Devices with 64-bit atomics take one maximum for it. For all others, the
# kernel runs twice: the first pass keeps `y`, the second one `x` among the pairs with this `y`.
# Both are dispatches of one program, because two programs could round one value differently.
#
# Lists[int]: the elements of the last axis are the heads of lists, then their items.
# ``a[j] += k`` puts item `k`, which is on no list yet, at the head of list `j`: element `j` becomes
# `k`, and element `k` what element `j` was, the next item. 0 ends a list. The order of the items
# depends on the order of the threads.
