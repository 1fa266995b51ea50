"""Reverse mode on kernel IR: bodies, functions and kernels -> their adjoints.

An adjoint has two sweeps. The forward sweep runs the primal and keeps the values that partial
derivatives need; the reverse sweep visits its statements backward and adds cotangents in place.
"""
