"""What `print` does not print."""

# ruff: noqa: T201

import shaderad as sad
from shaderad import float3


@sad.struct
class Strip:
    points: sad.Pointer[float3]


@sad.struct
class Sample:
    x: float
    n: int


def print_as_a_value():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = print(i)  # error: SR0232 | print | `print` gives no value
    return k


def print_of_text_made_by_str():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        print("i = ", str(i))  # error: SR0232 | str | print(f"{x:.3f}")
    return k


def print_to_a_file():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        print(i, file=None)  # error: SR0233 | None | `file=`
    return k


def print_of_stars():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        print(*(1, 2))  # error: SR0233 | *(1, 2) | `*`
    return k


def print_of_an_array():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        print("x is", x)  # error: SR0260 | x | the array `x` cannot be printed
    return k


def print_of_a_pointer_in_a_struct():
    @sad.kernel
    def k(i: sad.Index, s: Strip, y: sad.Out[float]):
        print(s)  # error: SR0260 | s | cannot be printed in a kernel
    return k


def print_of_a_module():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        print(f"{sad}")  # error: SR0260 | sad | `sad` cannot be printed
    return k


def int_format_of_a_float():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        print(f"{x[i]:d}")  # error: SR0261 | x[i] | `d` is not a format for `float`: Unknown format code 'd'
    return k


def format_that_python_does_not_know():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        print(f"{i:.2q}")  # error: SR0261 | i | not a format for `int`
    return k


def character_of_an_int():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        print(f"{i:c}")  # error: SR0261 | i | not every number is a character
    return k


def format_of_a_million_digits():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        print(f"{float(i):.1000000f}")  # error: SR0261 | float(i) | more than 1000 characters
    return k


def format_of_a_known_number():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        print(f"{2.5:x}")  # error: SR0261 | 2.5 | Unknown format code 'x'
    return k


def format_of_a_struct():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        print(f"{Sample(1.0, i):.3f}")  # error: SR0261 | Sample(1.0, i) | only numbers, vectors and matrices
    return k


def format_of_a_tuple():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float, 2], y: sad.Out[float]):
        print(f"{x.shape:>8}")  # error: SR0260 | x.shape | a tuple cannot be printed
    return k


def format_of_a_text_that_is_not_there_yet():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        print(f"{float(i)!r:>8}")  # error: SR0261 | float(i) | makes a text of the value
    return k


def format_that_is_computed():
    @sad.kernel
    def k(i: sad.Index, x: float, y: sad.Out[float]):
        print(f"{x:{i}}")  # error: SR0263 | i | the format of this `print` must be a string
    return k


def separator_that_is_computed():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        print(i, i, sep=i)  # error: SR0263 | i | `sep` of this `print`
    return k


def more_than_fits():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        values = sad.LocalArray[float, 300]()
        print(i, values)  # error: SR0262 | print(i, values) | 301 words of values
    return k
