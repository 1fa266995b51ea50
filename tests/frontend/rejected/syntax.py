"""Syntax that kernels do not have."""

import numpy as np

import shaderad as sad


def lambda_in_a_kernel():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        f = lambda x: x  # error: SR0202 | lambda x: x | `@sad.function`
        y[i] = 1.0
    return k


def list_comprehension():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = sum([1.0 for _ in range(3)])  # error: SR0232 | sum | `total += x[j]`
    return k


def generator_expression():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = max(float(j) for j in range(3))  # error: SR0202 | (float(j) for j in range(3)) | a generator expression
    return k


def list_display():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        values = [1.0, 2.0]  # error: SR0202 | [1.0, 2.0] | `sad.LocalArray[float, 8]()`
        y[i] = values[0]
    return k


def dict_display():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        values = {"a": 1.0}  # error: SR0202 | {"a": 1.0} | `@sad.struct`
        y[i] = 1.0
    return k


def text():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        name = "hello"  # error: SR0202 | "hello" | 'hello'
        y[i] = 1.0
    return k


def f_string():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        name = f"{i}"  # error: SR0202 | f"{i}" | an f-string
        y[i] = 1.0
    return k


def none_as_a_value():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        best = None  # error: SR0202 | None | `None`
        y[i] = 1.0
    return k


def complex_number():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = 2j  # error: SR0202 | 2j | a complex number
    return k


def walrus():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        if (n := 3) > 2:  # error: SR0202 | n := 3 | `:=`
            y[i] = 1.0
    return k


def identity_comparison():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        n = 3
        if i is n:  # error: SR0202 | i is n | write `==`
            y[i] = 1.0
    return k


def membership():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        if i in (1, 2):  # error: SR0202 | i in (1, 2) | `x == a or x == b`
            y[i] = 1.0
    return k


def slice_of_a_vector():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[sad.float3], y: sad.Out[float]):
        y[i] = x[i][0:2].x  # error: SR0202 | 0:2 | a slice
    return k


def starred_argument():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        pair = 1.0, 2.0
        y[i] = max(*pair)  # error: SR0233 | *pair | `*`
    return k


def starred_target():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        a, *b = 1.0, 2.0  # error: SR0202 | *b | write every name out
        y[i] = a
    return k


def nested_function():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        def twice(x):  # error: SR0202 | def twice(x): | `@sad.function`
            return x * 2
        y[i] = twice(1.0)
    return k


def nested_class():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        class Pair:  # error: SR0202 | class Pair: | `@sad.struct`
            pass
        y[i] = 1.0
    return k


def try_statement():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        try:  # error: SR0202 | try: | `if`
            y[i] = 1.0
        except ValueError:
            pass
    return k


def raise_statement():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        raise ValueError  # error: SR0202 | raise ValueError | assert
    return k


def with_statement():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        with open("x"):  # error: SR0202 | with open("x"): | `with`
            y[i] = 1.0
    return k


def match_statement():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        match i:  # error: SR0202 | match i: | `if` and `elif`
            case 0:
                y[i] = 1.0
    return k


def global_statement():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        global counter  # error: SR0202 | global counter | `sad.Out`
        counter = 3
    return k


def delete_statement():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        a = 1.0
        del a  # error: SR0202 | del a | `del`
    return k


def import_statement():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        import math  # error: SR0202 | import math | at the top of the file
        y[i] = math.pi
    return k


def for_else():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        for j in range(3):
            y[i] = 1.0
        else:
            y[i] = 2.0  # error: SR0202 | y[i] = 2.0 | `else` of a loop
    return k


def several_loop_variables():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        for a, b in range(3):  # error: SR0202 | a, b | a range gives one int
            y[i] = 1.0
    return k


def annotated_element():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i]: float = 1.0  # error: SR0202 | y[i]: float = 1.0 | annotate names only
    return k


def loop_over_an_array():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        for v in x:  # error: SR0210 | x | the array `x`
            y[i] = v
    return k


def loop_over_enumerate():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        for v in enumerate(x):  # error: SR0210 | enumerate(x) | `enumerate`
            y[i] = 1.0
    return k


def range_as_a_value():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        r = sad.range(3, limit=4)  # error: SR0211 | sad.range(3, limit=4) | `in` of a `for`
        y[i] = 1.0
    return k


def unique_in_a_read():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x[sad.unique(i)]  # error: SR0211 | x[sad.unique(i)] | the index of an Out array
    return k


def value_thrown_away():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] == 1.0  # error: SR0216 | y[i] == 1.0 | nothing uses it
    return k


def numpy_function_of_another_name():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = np.maximum(1.0, y[i])  # error: SR0232 | np.maximum | write `sad.maximum`
    return k


def function_of_arrays():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = sad.norm(x[i])  # error: SR0232 | sad.norm | write `sad.length(v)`
    return k


def function_of_whole_arrays():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = sad.softmax(x[i])  # error: SR0232 | sad.softmax | it takes whole arrays
    return k


def sum_of_a_generator():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = sum(x[j] for j in range(3))  # error: SR0232 | sum | `total += x[j]`
    return k


def builtin_without_counterpart():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = hash(i)  # error: SR0232 | hash | of Python's builtins, kernels have abs
    return k


def numpy_call():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = np.sin(1.0)  # error: SR0232 | np.sin | write `sad.sin`
    return k


def unknown_math():
    import math

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = math.gamma(1.0)  # error: SR0232 | math.gamma | copysign
    return k


def plain_python_function():
    def twice(x):
        return 2 * x

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = twice(1.0)  # error: SR0232 | twice | `@sad.function`
    return k


def kernel_called_in_a_kernel():
    @sad.kernel
    def other(i: sad.Index, y: sad.Out[float]):
        y[i] = 1.0

    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        other(i, y)  # error: SR0232 | other | from Python only
    return k


def text_of_an_assert():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        assert i > 0, f"{i}"  # error: SR0221 | f"{i}" | must be a plain string
    return k


def assert_that_fails_already():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        assert 1 > 2, "numbers are odd"  # error: SR0222 | assert 1 > 2, "numbers are odd" | numbers are odd
    return k
