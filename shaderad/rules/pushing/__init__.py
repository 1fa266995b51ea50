"""Forward mode on kernel IR: a kernel -> the kernel with tangents.

Second derivatives are the adjoint of that kernel.
"""
