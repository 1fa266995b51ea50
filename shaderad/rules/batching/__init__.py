"""Graphs -> graphs over batches: a rule per node, and the walk that applies them."""

from shaderad.rules.batching.walks import batched as batched
