"""Every array function that users call: what the files of this folder list in `__all__`."""

# ruff: noqa: F403
from shaderad.session.array_functions.creation import *
from shaderad.session.array_functions.custom import *
from shaderad.session.array_functions.elements import *
from shaderad.session.array_functions.indexing import *
from shaderad.session.array_functions.layout import *
from shaderad.session.array_functions.loops import *
from shaderad.session.array_functions.mapping import *
from shaderad.session.array_functions.reductions import *
from shaderad.session.array_functions.scans import *
from shaderad.session.array_functions.sorting import *

__all__ = [name for name in globals() if not name.startswith("_")]  # pyright: ignore[reportUnsupportedDunderAll]
