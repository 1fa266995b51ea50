"""`gradcheck`: derivatives against finite differences, and the vjp against the jvp.

With ``L(x) = <y_bar, f(x)>`` for a random cotangent `y_bar` and ``g = pullback(y_bar)``:
``(L(x + h s) - L(x - h s)) / 2h`` must equal ``<g, s>`` for random signs `s` and for single
elements, and ``<y_bar, jvp(s)>`` must equal ``<g, s>``. Steps are measured after rounding to the
argument's own type, and the tolerance includes the rounding error of the results.
"""

from __future__ import annotations

from shaderad.check.gradient import gradcheck, is_exempt

__all__ = ["gradcheck", "is_exempt"]
