"""Derivatives as tables: what the answer must be, for every stage that differentiates or checks."""

from shaderad.rules.partials import PARTIALS as PARTIALS
from shaderad.rules.partials import carries_derivative as carries_derivative
