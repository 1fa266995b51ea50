"""Signatures, functions, structs and derivatives that do not fit."""

import dataclasses
import functools
from enum import Enum

import numpy as np

import shaderad as sad
from shaderad import float3


@sad.function
def square(x: float) -> float:
    return x * x


def parameter_without_annotation():
    @sad.kernel
    def k(i: sad.Index, x, y: sad.Out[float]):  # error: SR0302 | x | `x: float`
        y[i] = x
    return k


def default_value():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float], x: float = 2.0):  # error: SR0214 | 2.0 | a default value
        y[i] = x
    return k


def kernel_in_a_class():
    class Mesh:
        @sad.kernel
        def k(self, i: sad.Index, y: sad.Out[float]):  # error: SR0302 | self | `mesh: Mesh`
            y[i] = 1.0
    return Mesh.k


def several_arrays_of_one_name():
    @sad.kernel
    def k(i: sad.Index, *x: sad.In[float]):  # error: SR0214 | x: sad.In[float] | `*x`
        pass
    return k


def parameters_of_any_name():
    @sad.kernel
    def k(i: sad.Index, **x: sad.In[float]):  # error: SR0214 | x: sad.In[float] | `**x`
        pass
    return k


def python_list_of_floats():
    @sad.kernel
    def k(i: sad.Index, x: list[float], y: sad.Out[float]):  # error: SR0301 | x: list[float] | `sad.In[float]`
        y[i] = x[i]
    return k


def keyword_only_parameter():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float], *, x: float):  # error: SR0214 | x: float | `x`
        y[i] = x
    return k


def reserved_parameter():
    @sad.kernel
    def k(i: sad.Index, dim: int, y: sad.Out[float]):  # error: SR0215 | dim: int | `dim`
        y[i] = dim
    return k


def index_after_parameters():
    @sad.kernel
    def k(y: sad.Out[float], i: sad.Index):  # error: SR0225 | i: sad.Index | Index `i`
        y[i] = 1.0
    return k


def result_of_a_kernel():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]) -> float:  # error: SR0226 | float | annotated `float`
        y[i] = 1.0
    return k


def value_returned_by_a_kernel():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        return 1.0  # error: SR0218 | return 1.0 | results go to arrays
    return k


def annotation_that_is_no_type():
    @sad.kernel
    def k(i: sad.Index, x: list, y: sad.Out[float]):  # error: SR0301 | x: list | `list`
        y[i] = 1.0
    return k


def numpy_scalar_as_a_type():
    @sad.kernel
    def k(i: sad.Index, x: np.float32, y: sad.Out[float]):  # error: SR0301 | x: np.float32 | names of their own
        y[i] = x
    return k


def access_without_element():
    @sad.kernel
    def k(i: sad.Index, x: sad.In, y: sad.Out[float]):  # error: SR0301 | x: sad.In | `In[float]`
        y[i] = 1.0
    return k


def annotation_that_is_unknown():
    @sad.kernel
    def k(i: sad.Index, x: "Unheard", y: sad.Out[float]):  # error: SR0301 | x: "Unheard" | 'Unheard'
        y[i] = 1.0
    return k


def array_of_arrays():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[sad.In[float]], y: sad.Out[float]):  # error: SR0301 | x: sad.In[sad.In[float]] | `In[float]` is no element type
        y[i] = 1.0
    return k


def array_of_local_arrays():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[sad.LocalArray[float, 3]]):  # error: SR0301 | x: sad.In[sad.LocalArray[float, 3]] | one more axis
        pass
    return k


def minimum_of_structs():
    @sad.struct
    class Point:
        x: float

    @sad.kernel
    def k(i: sad.Index, x: sad.Min[Point]):  # error: SR0301 | x: sad.Min[Point] | Min and Max take numbers
        pass
    return k


def constant_not_given():
    @sad.kernel
    def k(i: sad.Index, n: sad.Const[int], y: sad.Out[float]):  # error: SR0227 | n: sad.Const[int] | found nothing
        y[i] = n
    return k


def constant_vector():
    @sad.kernel
    def k(i: sad.Index, n: sad.Const[float3], y: sad.Out[float]):  # error: SR0301 | n: sad.Const[float3] | Const takes int
        y[i] = 1.0
    return k


class Word(Enum):
    A = 1
    B = "b"


def constant_of_an_enum_of_words():
    @sad.kernel
    def k(i: sad.Index, n: sad.Const[Word], y: sad.Out[float]):  # error: SR0301 | n: sad.Const[Word] | not every member of this enum is a number
        y[i] = 1.0
    return k


def path_without_result():
    @sad.function
    def f(x: float) -> float:  # error: SR0219 | def f(x: float) -> float: | `f` returns `float`
        if x > 0.0:
            return x

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = f(1.0)
    return k


def returns_that_disagree():
    @sad.function
    def f(x: float):
        if x > 0.0:
            return x
        return  # error: SR0220 | return | found nothing

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = f(1.0)
    return k


def recursion():
    @sad.function
    def even(n: int) -> int:
        return odd(n - 1)

    @sad.function
    def odd(n: int) -> int:
        return even(n - 1)  # error: SR0240 | even(n - 1) | even -> odd -> even

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = even(i)
    return k


def nothing_as_a_value():
    @sad.function
    def f(x: float):
        assert x > 0.0

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        a = f(1.0)  # error: SR0238 | f(1.0) | a call that returns nothing
        y[i] = 1.0
    return k


def too_few_arguments():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = square()  # error: SR0231 | square() | found 0 arguments, wanted 1
    return k


def unknown_keyword():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = square(z=1.0)  # error: SR0233 | 1.0 | `z=`
    return k


def argument_of_another_type():
    @sad.kernel
    def k(i: sad.Index, v: float3, y: sad.Out[float]):
        y[i] = square(v)  # error: SR0303 | v | expected `float`, found `float3`
    return k


def array_of_another_access():
    @sad.function
    def first(x: sad.In[float]) -> float:
        return x[0]

    @sad.kernel
    def k(i: sad.Index, s: sad.Add[float], y: sad.Out[float]):
        y[i] = first(s)  # error: SR0303 | s | expected `In[float]`, found `Add[float]`
    return k


def variable_for_a_constant():
    @sad.function
    def power(x: float, n: sad.Const[int]) -> float:
        return x**n

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = power(2.0, i)  # error: SR0319 | i | `int`
    return k


# -- sources -----------------------------------------------------------------------------------


def lambda_as_a_kernel():
    return sad.kernel(lambda i: i)  # error: SR0103 | return sad.kernel(lambda i: i) | a lambda


def generator_as_a_kernel():
    @sad.kernel  # error: SR0103 | @sad.kernel | `yield`
    def k(i: sad.Index):
        yield i
    return k


def coroutine_as_a_kernel():
    @sad.kernel  # error: SR0103 | @sad.kernel | `async def`
    async def k(i: sad.Index):
        pass
    return k


def kernel_as_a_function():
    @sad.kernel  # error: SR0103 | @sad.kernel | the kernel `k`
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = 1.0
    return sad.function(k)


def wrapped_by_another_decorator():
    def logged(f):
        @functools.wraps(f)
        def wrapper(*args):
            return f(*args)
        return wrapper

    @sad.kernel
    @logged
    def k(i: sad.Index, y: sad.Out[float]):  # error: SR0105 | | another decorator has wrapped `k`
        y[i] = 1.0
    return k


def number_as_a_kernel():
    return sad.kernel(3)  # error: SR0103 | | `3`


def function_as_a_struct():
    return sad.struct(square)  # error: SR0103 | | found


# -- structs -----------------------------------------------------------------------------------


def base_class():
    class Base:
        pass

    @sad.struct
    class Derived(Base):  # error: SR0104 | class Derived(Base): | base classes
        x: float
    return Derived


def property_of_a_struct():
    @sad.struct
    class Point:
        x: float

        @property  # error: SR0104 | @property | a property: `twice`
        def twice(self):
            return self.x * 2
    return Point


def constructor_of_a_struct():
    @sad.struct
    class Point:
        x: float

        def __init__(self, x):  # error: SR0104 | def __init__(self, x): | its own `__init__`
            self.x = x
    return Point


def mutable_default():
    @sad.struct
    class Point:  # error: SR0104 | class Point: | mutable default
        x: list = []
    return Point


def field_that_is_no_type():
    @sad.struct
    class Point:
        x: float
        name: str  # error: SR0301 | name: str | `str`

    @sad.kernel
    def k(i: sad.Index, p: Point, y: sad.Out[float]):
        y[i] = p.x
    return k


def plain_class_as_a_type():
    @dataclasses.dataclass
    class Point:
        x: float

    @sad.kernel
    def k(i: sad.Index, p: Point, y: sad.Out[float]):  # error: SR0301 | p: Point | `@sad.struct`
        y[i] = p.x
    return k


def struct_that_contains_itself():
    @sad.struct
    class Node:  # error: SR0247 | class Node: | `Node` contains itself
        value: float
        next: "Node"

    @sad.kernel
    def k(i: sad.Index, node: Node, y: sad.Out[float]):
        y[i] = node.value
    return k


def unknown_field():
    @sad.struct
    class Point:
        x: float

        def twice(self) -> float:
            return self.x * 2

    @sad.kernel
    def k(i: sad.Index, p: Point, y: sad.Out[float]):
        y[i] = p.z  # error: SR0310 | p.z | it has x, twice()
    return k


def struct_with_missing_fields():
    @sad.struct
    class Point:
        x: float
        y: float

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = Point(1.0).x  # error: SR0313 | Point(1.0) | no `y`
    return k


def struct_of_arrays_made_in_a_kernel():
    @sad.struct
    class Mesh:
        vertices: sad.In[float3]

    @sad.kernel
    def k(i: sad.Index, mesh: Mesh, y: sad.Out[float]):
        other = Mesh(mesh.vertices)  # error: SR0313 | Mesh(mesh.vertices) | it holds arrays
        y[i] = 1.0
    return k


# -- derivatives -------------------------------------------------------------------------------


def derivative_that_does_not_fit():
    @sad.function
    def cube(x: float) -> float:
        return x * x * x

    @cube.backward_derivative
    def cube_bwd(x: float, d_out: float):  # error: SR0234 | def cube_bwd(x: float, d_out: float): | x: DifferentialPair[float], d_out: float
        pass

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = cube(2.0)
    return k


def derivative_called_by_itself():
    @sad.function
    def cube(x: float) -> float:
        return x * x * x

    @cube.forward_derivative
    def cube_fwd(x: sad.DifferentialPair[float]) -> sad.DifferentialPair[float]:
        return sad.diff_pair(cube(x.p), 3.0 * x.p * x.p * x.d)

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = cube_fwd(sad.diff_pair(2.0)).d  # error: SR0232 | cube_fwd | `sad.fwd_diff(f)`
    return k


def derivative_of_an_intrinsic():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = sad.fwd_diff(sad.sin)(sad.diff_pair(1.0)).d  # error: SR0235 | sad.sin | `sad.sin`
    return k


def backward_derivative_as_a_value():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        x = sad.diff_pair(1.0)
        y[i] = sad.bwd_diff(square)(x, 1.0)  # error: SR0237 | sad.bwd_diff(square)(x, 1.0) | read `x.d` after it
    return k


def pair_missing():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = sad.fwd_diff(square)(2.0).d  # error: SR0245 | 2.0 | `DifferentialPair[float]`
    return k


def pair_without_a_name():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        sad.bwd_diff(square)(sad.diff_pair(2.0), 1.0)  # error: SR0245 | sad.diff_pair(2.0) | give it a name
    return k


def pair_of_ints():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = sad.diff_pair(i > 2).d  # error: SR0312 | sad.diff_pair(i > 2) | holds floats
    return k


def primal_of_a_pair_written():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        x = sad.diff_pair(1.0)
        x.p = 2.0  # error: SR0205 | x.p | `sad.diff_pair(p, d)`
        y[i] = x.p
    return k


def pair_bound_again():
    @sad.function
    def cube(x: float) -> float:
        return x * x * x

    @cube.backward_derivative
    def cube_bwd(x: sad.DifferentialPair[float], d_out: float):
        x = sad.diff_pair(x.p, 3.0 * x.p * x.p * d_out)  # error: SR0206 | x | add to `x.d`

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = cube(2.0)
    return k


def gradient_stored():
    @sad.function
    def get(w: sad.In[float], index: int) -> float:
        return w[index]

    @get.backward_derivative
    def get_bwd(w: sad.DifferentialPair[sad.In[float]], index: int, d_out: float):
        w.d[index] = d_out  # error: SR0208 | w.d[index] | it only takes `+=`

    @sad.kernel
    def k(i: sad.Index, w: sad.In[float], y: sad.Out[float]):
        y[i] = get(w, i)
    return k


def gradient_read():
    @sad.function
    def get(w: sad.In[float], index: int) -> float:
        return w[index]

    @get.backward_derivative
    def get_bwd(w: sad.DifferentialPair[sad.In[float]], index: int, d_out: float):
        w.d[index] += w.d[0]  # error: SR0208 | w.d[0] | gradient

    @sad.kernel
    def k(i: sad.Index, w: sad.In[float], y: sad.Out[float]):
        y[i] = get(w, i)
    return k


def pair_indexed():
    @sad.function
    def get(w: sad.In[float], index: int) -> float:
        return w[index]

    @get.backward_derivative
    def get_bwd(w: sad.DifferentialPair[sad.In[float]], index: int, d_out: float):
        w.d[index] += w[index]  # error: SR0310 | w[index] | `w.p[...]`

    @sad.kernel
    def k(i: sad.Index, w: sad.In[float], y: sad.Out[float]):
        y[i] = get(w, i)
    return k


def derivative_made_from_itself():
    @sad.function
    def cube(x: float) -> float:
        return x * x * x

    @cube.backward_derivative
    def cube_bwd(x: sad.DifferentialPair[float], d_out: float):
        own = sad.diff_pair(x.p)
        sad.bwd_diff(cube)(own, d_out)  # error: SR0240 | sad.bwd_diff(cube)(own, d_out) | derivative of cube
        x.d += own.d

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = cube(2.0)
    return k


def derivative_made_from_a_caller():
    @sad.function
    def cube(x: float) -> float:
        return x * x * x

    @sad.function
    def twice(x: float) -> float:
        return 2.0 * cube(x)

    @cube.forward_derivative
    def cube_fwd(x: sad.DifferentialPair[float]) -> sad.DifferentialPair[float]:
        return sad.diff_pair(cube(x.p), sad.fwd_diff(twice)(x).d)  # error: SR0240 | sad.fwd_diff(twice)(x) | derivative of twice -> derivative of cube

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = cube(2.0)
    return k


def derivative_of_a_function_that_writes_an_array():
    @sad.function
    def note(total: sad.Add[float], x: float):
        total[0] += x

    @note.backward_derivative
    def note_bwd(total: sad.DifferentialPair[sad.Add[float]], x: sad.DifferentialPair[float]):  # error: SR0248 | def note_bwd(total: sad.DifferentialPair[sad.Add[float]], x: sad.DifferentialPair[float]): | return the value from `note`
        x.d += 1.0

    @sad.kernel
    def k(i: sad.Index, total: sad.Add[float]):
        note(total, 2.0)
    return k


def forward_derivative_of_a_function_that_reads_an_array():
    @sad.function
    def fetch(w: sad.In[float], index: int) -> float:
        return w[index]

    @fetch.forward_derivative
    def fetch_fwd(w: sad.DifferentialPair[sad.In[float]], index: int) -> sad.DifferentialPair[float]:  # error: SR0249 | def fetch_fwd(w: sad.DifferentialPair[sad.In[float]], index: int) -> sad.DifferentialPair[float]: | no tangent of an array
        return sad.diff_pair(w.p[index])

    @sad.kernel
    def k(i: sad.Index, w: sad.In[float], y: sad.Out[float]):
        y[i] = fetch(w, i)
    return k
