"""Names: unknown, not yet assigned, captured, of the wrong kind."""

import math

import numpy as np

import shaderad as sad

TABLE = np.zeros(3)
LABEL = "text"


def unknown_name():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = unheard_of  # error: SR0203 | unheard_of | name `unheard_of`
    return k


def unknown_name_of_a_module():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = sad.sinus(1.0)  # error: SR0229 | sad.sinus | no `sinus`
    return k


def name_nearly_right():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        colour = x[i]
        y[i] = color  # error: SR0203 | color | did you mean `colour`?
    return k


def name_of_another_library():
    @sad.kernel
    def k(i: sad.Index, y: sad.Add[float]):
        sad.atomic_add(y, i, 1.0)  # error: SR0229 | sad.atomic_add | `sad.Add[float]`
    return k


def name_of_another_library_alone():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = vec3(1.0).x  # error: SR0203 | vec3 | `sad.float3`
    return k


def name_that_math_has_not():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = math.sqr(2.0)  # error: SR0203 | math.sqr | did you mean `sqrt`
    return k


def annotation_of_another_library():
    @sad.kernel
    def k(i: sad.Index, x: "sad.f32", y: sad.Out[float]):  # error: SR0301 | x: "sad.f32" | write `float`
        y[i] = x
    return k


def assigned_in_one_branch():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        if i > 3:
            a = 1.0
        y[i] = a  # error: SR0204 | a | some path
    return k


def assigned_in_a_loop_that_may_not_run():
    @sad.kernel
    def k(i: sad.Index, n: int, y: sad.Out[float]):
        for j in range(n):
            a = 1.0 * j
        y[i] = a  # error: SR0204 | a | zero times
    return k


def loop_variable_after_a_loop_that_may_not_run():
    @sad.kernel
    def k(i: sad.Index, n: int, y: sad.Out[float]):
        for j in range(n):
            pass
        y[i] = j  # error: SR0204 | j | zero times
    return k


def assigned_after_break():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        for j in range(3):
            if j > i:
                break
            a = 1.0
        y[i] = a  # error: SR0204 | a | some path
    return k


def assigned_after_continue():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        for j in range(3):
            if j > i:
                continue
            a = 1.0
        y[i] = a  # error: SR0204 | a | some path
    return k


def assigned_in_a_while():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        n = i
        while n > 0:
            n -= 1
            a = 1.0
        y[i] = a  # error: SR0204 | a | some path
    return k


def assigned_further_down():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = LABEL  # error: SR0204 | LABEL | further down
        LABEL = 1.0
    return k


def augmented_before_it_is_assigned():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        total += 1.0  # error: SR0204 | total | further down
        y[i] = total
    return k


def only_annotated():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        a: float
        y[i] = a  # error: SR0204 | a | some path
    return k


def captured_array():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = TABLE[i]  # error: SR0212 | TABLE | `TABLE: sad.In[float]`
    return k


def captured_text():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = LABEL  # error: SR0213 | LABEL | a str
    return k


def module_as_a_value():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        y[i] = np  # error: SR0238 | np | `np`
    return k


def index_assigned():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        i = 3  # error: SR0206 | i | it is an Index
        y[i] = 1.0
    return k


def index_augmented():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        i += 3  # error: SR0206 | i | it is an Index
        y[i] = 1.0
    return k


def index_as_a_loop_variable():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        for i in range(3):  # error: SR0206 | i | it is an Index
            y[i] = 1.0
    return k


def array_name_assigned():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        x = 2.0  # error: SR0206 | x | the array `x`
        y[i] = x
    return k


def array_bound_to_another_name():
    @sad.kernel
    def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        z = x  # error: SR0238 | x | the array `x`
        y[i] = z[i]
    return k


def name_changes_its_type():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        s = 0
        s = s + 0.5  # error: SR0317 | s | `s = 0.0`
        y[i] = s
    return k


def name_changes_its_type_by_division():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        n = 8
        n /= 2  # error: SR0317 | n | `n` is `int`
        y[i] = n
    return k


def bool_name_becomes_a_number():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        found = False
        found = 1  # error: SR0317 | found | `found` is `bool`
        y[i] = 1.0
    return k


def loop_variable_of_another_type():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        j = 0.5
        for j in range(3):  # error: SR0317 | j | another name for the loop variable
            y[i] = j
    return k


def annotation_against_the_type():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        a = 1.0
        a: int = 2  # error: SR0317 | a | `a` is `float`
        y[i] = a
    return k


def local_name_annotated_as_an_array():
    @sad.kernel
    def k(i: sad.Index, y: sad.Out[float]):
        a: sad.In[float]  # error: SR0301 | sad.In[float] | a local name holds a value
        y[i] = 1.0
    return k


def two_structs_of_one_name():
    def make():
        @sad.struct
        class Point:
            x: float
        return Point
    One, Two = make(), make()

    @sad.function
    def second(p: Two) -> float:
        return p.x

    @sad.kernel
    def k(i: sad.Index, p: One, y: sad.Out[float]):
        y[i] = p.x + second(Two(1.0))  # error: SR0246 | Two(1.0) | `Point`
    return k
