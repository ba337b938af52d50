"""Errors carry what they say, survive pickling, and read as one line a mistake."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from hwmodel import errors
from hwmodel.errors import (
    CombinedError,
    ConfigError,
    GraphError,
    HwModelError,
    ParameterError,
    Problem,
    RefusedError,
    RegistryError,
    SimulationError,
    UnsupportedError,
    nearest,
)

EXAMPLES: dict[type[HwModelError], tuple[object, ...]] = {
    HwModelError: (),
    ConfigError: ("w.yaml", (Problem("recipe", 6, "must be text, got 3"),)),
    ParameterError: ("margin_bits", "must be >= 0, got -1"),
    RegistryError: ("preset", "delaid", ("bf16", "delayed")),
    UnsupportedError: ((("gemm.0", "cube", "hif8"), ("cast.1", "vector", "hif8")), ("inputs.0", "")),
    SimulationError: ("tasks wait for each other", 17, ("a", "b")),
    GraphError: ("step", "tensor 'x' is written twice"),
    CombinedError: (("m: must be >= 1, got 0", "unknown op 'ad'"),),
    RefusedError: ("recipe.timing", "static scales have no history", ()),
}


def test_every_class_has_an_example() -> None:
    classes = {item for _, item in inspect.getmembers(errors, inspect.isclass) if issubclass(item, Exception)}
    assert classes == set(EXAMPLES)


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_args_are_the_constructors_arguments_through_pickle_and_copy(kind: type[HwModelError]) -> None:
    error = kind(*EXAMPLES[kind])
    assert error.args == EXAMPLES[kind]
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), type(error)(*error.args)):
        assert type(again) is kind
        assert again.args == error.args
        assert str(again) == str(error)
        assert vars(again) == vars(error)


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        (ConfigError, ValueError),
        (ParameterError, ValueError),
        (RegistryError, LookupError),
        (SimulationError, RuntimeError),
        (GraphError, ValueError),
        (RefusedError, ValueError),
    ],
)
def test_errors_are_also_the_builtin_kind_a_caller_expects(kind: type[Exception], base: type[Exception]) -> None:
    assert issubclass(kind, base)
    assert issubclass(kind, HwModelError)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ConfigError, "w.yaml:6: recipe: must be text, got 3"),
        (ParameterError, "margin_bits: must be >= 0, got -1"),
        (RegistryError, "unknown preset 'delaid'; did you mean 'delayed'? known: bf16, delayed"),
        (
            UnsupportedError,
            "cube does not support 'hif8', which gemm.0 would need\n"
            "vector does not support 'hif8', which cast.1 would need",
        ),
        (SimulationError, "at 17 ps: tasks wait for each other: a, b"),
        (GraphError, "graph 'step': tensor 'x' is written twice"),
        (RefusedError, "recipe.timing: static scales have no history"),
    ],
)
def test_texts(kind: type[HwModelError], text: str) -> None:
    assert str(kind(*EXAMPLES[kind])) == text


def test_a_config_error_shows_all_problems_with_what_is_known_of_their_place() -> None:
    problems = (
        Problem("", None, "is not UTF-8 text"),
        Problem("steps", None, "must be > 0, got 0", source="--set"),
        Problem("resources.hbm", 3, "is missing", source="base.yaml"),
    )
    lines = ["w.yaml: is not UTF-8 text", "--set: steps: must be > 0, got 0", "base.yaml:3: resources.hbm: is missing"]
    assert str(ConfigError("w.yaml", problems)).splitlines() == lines


def test_an_unknown_name_far_from_all_gets_only_the_known_ones() -> None:
    assert str(RegistryError("op", "zzz", ("gemm", "cast"))) == "unknown op 'zzz'; known: cast, gemm"
    assert str(RegistryError("op", "zzz", ())) == "unknown op 'zzz'; none are known"


def test_a_long_list_of_known_names_is_cut_and_counted() -> None:
    text = str(RegistryError("op", "zzz", tuple(f"n{index:03d}" for index in range(100))))
    assert text.endswith("n059, ... (100 in all)")


def test_nearest_ignores_case() -> None:
    assert nearest("NPU", ["gpu", "npu"]) == "npu"
    assert nearest("quux", ["gpu", "npu"]) is None
