"""Derivative rules as tables, shared by every stage that differentiates or checks."""

from shaderad.rules.partials import PARTIALS as PARTIALS
from shaderad.rules.partials import carries_derivative as carries_derivative
