"""Derivatives of array graphs: a push and a pull rule per node, and the walks that apply them."""

from shaderad.rules.arrays.walks import LinearisedGraph as LinearisedGraph
from shaderad.rules.arrays.walks import jvp as jvp
from shaderad.rules.arrays.walks import push as push
from shaderad.rules.arrays.walks import vjp as vjp
