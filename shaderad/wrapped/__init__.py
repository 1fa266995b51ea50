"""Functions on arrays as functions of the flat lists of host arrays that other libraries give.

What `shaderad.torch` and its like share; no file here knows one of those libraries.
"""
