"""Operators, conversions, indices and components on values that do not take them."""

import math

import shaderad as sad
from shaderad import float2, float3

N = 3


def truth_of_a_number():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        if i:  # error: SR0305 | i | found `int`
            y[i] = 1.0
    return k


def truth_of_a_bool_vector():
    @sad.kernel
    def k(i: sad.Index, v: float3, y: sad.Out[float]):
        while v > 0.0:  # error: SR0305 | v > 0.0 | `sad.any(...)`
            y[i] = 1.0
    return k


def and_of_numbers():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = 1.0 if i > 2 and i else 0.0  # error: SR0305 | i | found `int`
    return k


def not_of_a_number():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = 1.0 if not i else 0.0  # error: SR0305 | not i | found `int`
    return k


def bool_in_arithmetic():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = 1.0 + (i > 3)  # error: SR0311 | 1.0 + (i > 3) | `bool`
    return k


def uint_with_int():
    @sad.kernel
    def k(i: sad.Index, u: sad.uint, y: sad.Out[int]):
        y[i] = int(u + i)  # error: SR0304 | u + i | `uint` and `int`
    return k


def half_with_float():
    @sad.kernel
    def k(i: sad.Index, h: sad.half, x: float, y: sad.Out[float]):
        y[i] = float(h) + h * x  # error: SR0304 | h * x | `half` and `float`
    return k


def vectors_of_different_size():
    @sad.kernel
    def k(i: sad.Index, a: float2, b: float3, y: sad.Out[float]):
        y[i] = (a + b).x  # error: SR0304 | a + b | `float2` and `float3`
    return k


def matrix_times_vector_by_element():
    @sad.kernel
    def k(i: sad.Index, m: sad.float3x3, v: float3, y: sad.Out[float3]):
        y[i] = m * v  # error: SR0304 | m * v | write `@`
    return k


def inner_product_as_matmul():
    @sad.kernel
    def k(i: sad.Index, v: float3, y: sad.Out[float]):
        y[i] = v @ v  # error: SR0304 | v @ v | `sad.dot(a, b)`
    return k


def shift_of_a_float():
    @sad.kernel
    def k(i: sad.Index, x: float, y: sad.Out[float]):
        y[i] = x << 2  # error: SR0304 | x << 2 | bitwise operators take int
    return k


def sides_of_a_conditional():
    @sad.kernel
    def k(i: sad.Index, v: float3, y: sad.Out[float3]):
        y[i] = v if i > 3 else 0.0  # error: SR0304 | v if i > 3 else 0.0 | `float3` and `0.0`
    return k


def comparison_of_bool_and_int():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = 1.0 if (i > 3) == 1 else 0.0  # error: SR0304 | (i > 3) == 1 | a bool compares with a bool
    return k


def constant_too_large():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[int]):
        y[i] = i + 3000000000  # error: SR0306 | 3000000000 | `3000000000` does not fit `int`
    return k


def constant_not_exact():
    @sad.kernel
    def k(i: sad.Index, x: float, y: sad.Out[float]):
        y[i] = x + 16777217  # error: SR0306 | 16777217 | 16777216
    return k


def whole_number_of_infinity():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[int]):
        y[i] = int(math.inf)  # error: SR0306 | int(math.inf) | infinity
    return k


def negative_uint():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[sad.uint]):
        y[i] = -1  # error: SR0306 | -1 | `-1` does not fit `uint`
    return k


def one_index_for_two_axes():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float, 2], y: sad.Out[float]):
        y[i] = x[i]  # error: SR0307 | x[i] | takes 2 indices, found 1
    return k


def negative_index():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x[-1]  # error: SR0308 | -1 | positions count from 0
    return k


def component_out_of_range():
    @sad.kernel
    def k(i: sad.Index, v: float3, y: sad.Out[float]):
        y[i] = v[N]  # error: SR0308 | N | it has 3 elements
    return k


def local_array_out_of_range():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        a = sad.LocalArray[float, 4]()
        a[4] = 1.0  # error: SR0308 | 4 | index 4
        y[i] = a[0]
    return k


def axis_out_of_range():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x.shape[1]  # error: SR0308 | 1 | it has 1 element
    return k


def index_beyond_32_bits():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x[4294967296]  # error: SR0306 | 4294967296 | does not fit `int`
    return k


def float_as_an_index():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x[1.5]  # error: SR0309 | 1.5 | found `1.5`
    return k


def unknown_component():
    @sad.kernel
    def k(i: sad.Index, v: float2, y: sad.Out[float]):
        y[i] = v.z  # error: SR0310 | v.z | it has x, y
    return k


def attribute_of_a_number():
    @sad.kernel
    def k(i: sad.Index, x: float, y: sad.Out[float]):
        y[i] = x.real  # error: SR0310 | x.real | float has no `real`
    return k


def transpose_as_in_numpy():
    @sad.kernel
    def k(i: sad.Index, m: sad.float3x3, y: sad.Out[sad.float3x3]):
        y[i] = m.T  # error: SR0310 | m.T | `sad.transpose(m)`
    return k


def method_of_an_array():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x.sum()  # error: SR0310 | x.sum | `.shape` and `len()`
    return k


def function_of_the_wrong_type():
    @sad.kernel
    def k(i: sad.Index, x: float, y: sad.Out[float]):
        y[i] = sad.dot(x, x)  # error: SR0312 | sad.dot(x, x) | two float vectors
    return k


def hash_of_an_int():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = sad.uniform01(sad.pcg(i))  # error: SR0312 | sad.pcg(i) | `sad.uint(...)`
    return k


def bits_of_another_size():
    @sad.kernel
    def k(i: sad.Index, v: float2, y: sad.Out[int]):
        y[i] = sad.bitcast(int, v)  # error: SR0312 | sad.bitcast(int, v) | `float2`
    return k


def length_of_a_number():
    @sad.kernel
    def k(i: sad.Index, x: float, y: sad.Out[float]):
        y[i] = len(x)  # error: SR0312 | len(x) | `float`
    return k


def vector_from_too_many():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float3]):
        y[i] = float3(1, 2)  # error: SR0313 | float3(1, 2) | `1`, `2`
    return k


def matrix_from_too_few():
    @sad.kernel
    def k(i: sad.Index, v: float2, y: sad.Out[sad.float2x2]):
        y[i] = sad.float2x2(v, 1.0)  # error: SR0313 | sad.float2x2(v, 1.0) | 2 rows `float2`
    return k


def constant_division_by_zero():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = N / (N - 3)  # error: SR0314 | N / (N - 3) | by a constant zero
    return k


def float_by_zero():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x[i] / 0  # error: SR0314 | x[i] / 0 | `/` by a constant zero
    return k


def remainder_by_captured_zero():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x[i] % (N - 3)  # error: SR0314 | x[i] % (N - 3) | `%` by a constant zero
    return k


def update_by_zero():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        v = x[i]
        v /= 0.0  # error: SR0314 | v /= 0.0 | `/` by a constant zero
        y[i] = v
    return k


def int_to_the_int():
    @sad.kernel
    def k(i: sad.Index, n: int, y: sad.Out[float]):
        y[i] = 2**n  # error: SR0315 | 2**n | `float(x) ** n`
    return k


def complement_of_a_float():
    @sad.kernel
    def k(i: sad.Index, x: float, y: sad.Out[float]):
        y[i] = ~x  # error: SR0316 | ~x | `~`
    return k


def tuple_by_variable():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float, 2], y: sad.Out[float]):
        y[i] = x.shape[i]  # error: SR0319 | i | known only at run time
    return k


def size_of_a_local_array():
    @sad.kernel
    def k(i: sad.Index, n: int, y: sad.Out[float]):
        a = sad.LocalArray[float, n]()  # error: SR0319 | n | known only at run time
        y[i] = a[0]
    return k


def middle_of_a_chain_that_is_a_call_with_an_effect():
    @sad.function
    def counted(x: float, calls: sad.Add[int]) -> float:
        calls[0] += 1
        return x / 2

    @sad.kernel
    def k(i: sad.Index, x: float, y: sad.Out[float], calls: sad.Add[int]):
        n = 0
        while 0.0 < counted(x, calls) < n:  # error: SR0244 | counted(x, calls) | would run twice
            n += 1
        y[i] = n
    return k


def rounding_to_digits():
    @sad.kernel
    def k(i: sad.Index, x: float, y: sad.Out[float]):
        y[i] = round(x, 2)  # error: SR0231 | round(x, 2) | it gives an int
    return k


def keyword_of_an_intrinsic():
    @sad.kernel
    def k(i: sad.Index, x: float, y: sad.Out[float]):
        y[i] = sad.clamp(x, low=0.0, high=1.0)  # error: SR0233 | 0.0 | `low=`
    return k
