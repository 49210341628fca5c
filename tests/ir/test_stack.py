"""Page faults are counted, not time: a new chunk of the stack is memory that has not been touched."""

import resource
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from trivium.ir.stack import with_stack

CALLS = 1000


def add(a: int, b: int) -> int:
    return a + b


def total() -> int:
    """Makes many calls that are not deep."""
    result = 0
    for number in range(CALLS):
        result = add(result, number)
    return result


def most_faults(function: Callable[[], int]) -> int:
    """Returns the page faults of a call at the depth where there are most, on a stack that begins with a chunk of the
    usual size."""
    with ThreadPoolExecutor(1) as pool:
        return max(pool.map(lambda depth: faults_at(depth, function), range(200)))


def faults_at(depth: int, function: Callable[[], int]) -> int:
    """Returns the page faults of a call with so many frames below it."""
    if depth:
        return faults_at(depth - 1, function)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    assert function() == CALLS * (CALLS - 1) // 2
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_calls_do_not_allocate_at_any_depth() -> None:
    assert most_faults(with_stack(total)) < CALLS // 10


def test_python_allocates_at_some_depth() -> None:
    # When a version of Python does not, `with_stack` is not needed for it.
    assert most_faults(total) >= CALLS


def test_names_arguments_and_errors_are_those_of_the_function() -> None:
    @with_stack
    def divided(a: float, b: float = 2) -> float:
        """Divides."""
        return a / b

    assert (divided(3), divided(3, b=4), divided.__name__, divided.__doc__) == (1.5, 0.75, "divided", "Divides.")
    with pytest.raises(ZeroDivisionError) as raised:
        divided(1, 0)
    assert raised.traceback[-1].name == "divided"


def test_functions_may_call_themselves() -> None:
    @with_stack
    def factorial(n: int) -> int:
        return n * factorial(n - 1) if n else 1

    assert factorial(20) == 2432902008176640000
