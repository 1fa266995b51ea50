"""Every array function that users call: what the files of this folder list in `__all__`."""

# ruff: noqa: F403
from shaderad.functions.activations import *
from shaderad.functions.batching import *
from shaderad.functions.contractions import *
from shaderad.functions.convolutions import *
from shaderad.functions.creation import *
from shaderad.functions.custom import *
from shaderad.functions.elements import *
from shaderad.functions.indexing import *
from shaderad.functions.layout import *
from shaderad.functions.loops import *
from shaderad.functions.mapping import *
from shaderad.functions.reductions import *
from shaderad.functions.scans import *
from shaderad.functions.sorting import *
from shaderad.functions.statistics import *

__all__ = [name for name in globals() if not name.startswith("_")]  # pyright: ignore[reportUnsupportedDunderAll]
