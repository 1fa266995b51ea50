"""The annotations of kernels as type checkers see them; never imported by a program.

At run time ``sad.In`` is an object that makes annotations (`shaderad.language.annotations`), which
no checker accepts as a type. Here each is a class that has every attribute and operator, because a
type checker cannot check the body of a kernel. The front end does, and its errors name the line.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "Add",
    "Const",
    "DifferentialPair",
    "In",
    "Index",
    "LocalArray",
    "Max",
    "Min",
    "Out",
    "Pointer",
    "Sampler",
    "Texture1D",
    "Texture2D",
    "Texture2DArray",
    "Texture3D",
    "TextureCube",
    "bool2",
    "bool3",
    "bool4",
    "double",
    "double2",
    "double2x2",
    "double2x3",
    "double2x4",
    "double3",
    "double3x2",
    "double3x3",
    "double3x4",
    "double4",
    "double4x2",
    "double4x3",
    "double4x4",
    "float2",
    "float2x2",
    "float2x3",
    "float2x4",
    "float3",
    "float3x2",
    "float3x3",
    "float3x4",
    "float4",
    "float4x2",
    "float4x3",
    "float4x4",
    "half",
    "half2",
    "half2x2",
    "half2x3",
    "half2x4",
    "half3",
    "half3x2",
    "half3x3",
    "half3x4",
    "half4",
    "half4x2",
    "half4x3",
    "half4x4",
    "int2",
    "int3",
    "int4",
    "uint",
    "uint2",
    "uint3",
    "uint4",
]


class KernelValue(Any):
    """A value in the body of a kernel, of whatever type; made in Python, one of NumPy."""

    def __class_getitem__(cls, arguments: Any) -> Any: ...

    def __new__(cls, *parts: Any) -> Any: ...

    def __getattr__(self, name: str) -> Any: ...

    def __getitem__(self, index: Any) -> Any: ...

    def __setitem__(self, index: Any, value: Any) -> None: ...

    def __add__(self, other: Any) -> Any: ...

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __add__
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __add__
    __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __add__

    def __neg__(self) -> Any: ...


class ThreadIndex(int):
    """A thread's own index along one axis of the launch."""


Index = ThreadIndex
In = KernelValue
Out = KernelValue
Add = KernelValue
Min = KernelValue
Max = KernelValue
Const = KernelValue
LocalArray = KernelValue
DifferentialPair = KernelValue
Pointer = KernelValue
Sampler = KernelValue
Texture1D = KernelValue
Texture2D = KernelValue
Texture2DArray = KernelValue
Texture3D = KernelValue
TextureCube = KernelValue

uint = KernelValue
half = KernelValue
double = KernelValue
float2 = KernelValue
float3 = KernelValue
float4 = KernelValue
half2 = KernelValue
half3 = KernelValue
half4 = KernelValue
double2 = KernelValue
double3 = KernelValue
double4 = KernelValue
int2 = KernelValue
int3 = KernelValue
int4 = KernelValue
uint2 = KernelValue
uint3 = KernelValue
uint4 = KernelValue
bool2 = KernelValue
bool3 = KernelValue
bool4 = KernelValue
float2x2 = KernelValue
float2x3 = KernelValue
float2x4 = KernelValue
float3x2 = KernelValue
float3x3 = KernelValue
float3x4 = KernelValue
float4x2 = KernelValue
float4x3 = KernelValue
float4x4 = KernelValue
half2x2 = KernelValue
half2x3 = KernelValue
half2x4 = KernelValue
half3x2 = KernelValue
half3x3 = KernelValue
half3x4 = KernelValue
half4x2 = KernelValue
half4x3 = KernelValue
half4x4 = KernelValue
double2x2 = KernelValue
double2x3 = KernelValue
double2x4 = KernelValue
double3x2 = KernelValue
double3x3 = KernelValue
double3x4 = KernelValue
double4x2 = KernelValue
double4x3 = KernelValue
double4x4 = KernelValue
