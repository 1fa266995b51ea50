"""Left-hand sides that cannot be written, and arrays used against their access."""

import shaderad as sad
from shaderad import float3


@sad.struct
class Ball:
    centre: float3
    radius: float

    def grow(self) -> float:
        self.radius = 2.0  # error: SR0205 | self.radius | `own = self`
        return self.radius


@sad.struct
class Field:
    heights: sad.In[float]
    scale: float


def field_of_self(marked=Ball):
    @sad.kernel
    def k(i: sad.Index, ball: Ball, y: sad.Out[float]):
        y[i] = ball.grow()
    return k


def component_of_a_parameter():
    @sad.kernel
    def k(i: sad.Index, v: float3, y: sad.Out[float]):
        v.x = 1.0  # error: SR0205 | v.x | `own = v`
        y[i] = v.x
    return k


def component_of_a_parameter_augmented():
    @sad.kernel
    def k(i: sad.Index, v: float3, y: sad.Out[float]):
        v[1] += 1.0  # error: SR0205 | v[1] | parameter `v`
        y[i] = v.x
    return k


def field_of_a_struct_that_holds_arrays():
    @sad.kernel
    def k(i: sad.Index, field: Field, y: sad.Out[float]):
        field.scale = 2.0  # error: SR0205 | field.scale | `own = field.scale`
        y[i] = field.scale
    return k


def call_assigned():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        float3(1.0).x = 2.0  # error: SR0201 | float3(1.0).x | an expression
        y[i] = 1.0
    return k


def shape_assigned():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y.shape = 3  # error: SR0201 | y.shape | a tuple
    return k


def element_of_a_tuple():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        a = 1.0
        (a, a)[0] = 2.0  # error: SR0205 | (a, a)[0] | (a, a)[0]
        y[i] = a
    return k


def repeated_component():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        v = float3(1.0)
        v.xx = sad.float2(1, 2)  # error: SR0209 | v.xx | `xx`
        y[i] = v.x
    return k


def write_to_in():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float]):
        x[i] = 1.0  # error: SR0208 | x[i] | `x` is an `In` array
    return k


def augmented_in():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float]):
        x[i] += 1.0  # error: SR0208 | x[i] | `x` is an `In` array
    return k


def store_to_add():
    @sad.kernel
    def k(i: sad.Index, s: sad.Add[float]):
        s[0] = 1.0  # error: SR0208 | s[0] | `+=` and `-=`
    return k


def multiply_add():
    @sad.kernel
    def k(i: sad.Index, s: sad.Add[float]):
        s[0] *= 2.0  # error: SR0208 | s[0] | `+=` and `-=`
    return k


def read_of_add():
    @sad.kernel
    def k(i: sad.Index, s: sad.Add[float], y: sad.Out[float]):
        y[i] = s[0]  # error: SR0208 | s[0] | `Add` array
    return k


def min_with_max():
    @sad.kernel
    def k(i: sad.Index, low: sad.Min[float]):
        low[0] = sad.max(low[0], 1.0)  # error: SR0208 | low[0] | sad.min(b[j], v)
    return k


def min_of_another_element():
    @sad.kernel
    def k(i: sad.Index, low: sad.Min[float]):
        low[0] = sad.min(low[1], 1.0)  # error: SR0208 | low[1] | sad.min(b[j], v)
    return k


def min_augmented():
    @sad.kernel
    def k(i: sad.Index, low: sad.Min[float]):
        low[0] += 1.0  # error: SR0208 | low[0] | `low` is a `Min` array
    return k


def too_many_values():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        a, b = 1.0, 2.0, 3.0  # error: SR0318 | a, b | 3 values for 2 targets
        y[i] = a
    return k


def unpacking_a_number():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        a, b = i  # error: SR0243 | a, b | `int`
        y[i] = a
    return k


def value_of_another_type():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = float3(1.0)  # error: SR0303 | float3(1.0) | expected `float`, found `float3`
    return k


def float_into_an_int_array():
    @sad.kernel
    def k(i: sad.Index, x: float, y: sad.Out[int]):
        y[i] = x  # error: SR0303 | x | `int(...)`
    return k


def loop_that_nothing_ends():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        while True:  # error: SR0250 | True | `break`
            y[i] += 1.0
    return k


def step_of_zero():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        for j in range(3, 9, 0):  # error: SR0223 | range(3, 9, 0) | step 0
            y[i] = j
    return k


def unrolled_loop_of_unknown_length():
    @sad.kernel
    def k(i: sad.Index, n: int, y: sad.Out[float]):
        for j in sad.static_range(n):  # error: SR0224 | sad.static_range(n) | `sad.Const[int]`
            y[i] = j
    return k


def limit_known_at_run_time():
    @sad.kernel
    def k(i: sad.Index, n: int, y: sad.Out[float]):
        for j in sad.range(n, limit=n):  # error: SR0217 | n | found `int`
            y[i] = j
    return k


def limit_of_zero():
    @sad.kernel
    def k(i: sad.Index, n: int, y: sad.Out[float]):
        while sad.limit(n > 3, 0):  # error: SR0217 | 0 | `0`
            y[i] = 1.0
    return k


def range_of_a_float():
    @sad.kernel
    def k(i: sad.Index, x: float, y: sad.Out[float]):
        for j in range(x):  # error: SR0303 | x | `int(...)`
            y[i] = j
    return k


def keyword_of_range():
    @sad.kernel
    def k(i: sad.Index, n: int, y: sad.Out[float]):
        for j in range(n, limit=4):  # error: SR0233 | 4 | `limit=`
            y[i] = j
    return k


def range_without_bounds():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        for j in range():  # error: SR0231 | range() | found 0 arguments, wanted 1 to 3
            y[i] = j
    return k


def part_of_a_parameter_that_is_replaced_on_one_path_only():
    @sad.kernel
    def k(i: sad.Index, c: float3, y: sad.Out[float3]):
        if i > 2:
            c = float3(1.0)
        c.x = 2.0  # error: SR0205 | c.x | copy it first: `own = c`
        y[i] = c
    return k


def pair_of_a_function_that_is_no_derivative():
    @sad.function
    def add_one(x: sad.DifferentialPair[float]):
        x.d += 1.0  # error: SR0205 | x.d | copy it first: `own = x`

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        x = sad.diff_pair(2.0)
        add_one(x)
        y[i] = x.d
    return k


def call_that_does_nothing():
    @sad.function
    def add_one(x: float):
        x += 1.0

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        x = 2.0
        add_one(x)  # error: SR0241 | add_one(x) | return the result
        y[i] = x
    return k
