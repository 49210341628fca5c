"""Our declaration of PJRT's C ABI, compared with the C header that TensorFlow's wheel contains: every constant, and the
size and the offset of every field of every structure, including the table of functions."""

import ctypes
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from trivium.backends.table.abi import TYPES, abi
from trivium.ir.bytecode.versions import CURRENT, FIRST

pytestmark = pytest.mark.tensorflow

NATIVE = Path(__file__).parents[3] / "backends/native"


def include() -> Path:
    """Returns the folder of TensorFlow's headers; TensorFlow itself is not loaded."""
    found = importlib.util.find_spec("tensorflow")
    if found is None or not found.submodule_search_locations:
        pytest.skip("TensorFlow, whose wheel has the header, is not installed")
    folder = Path(found.submodule_search_locations[0]) / "include"
    if not (folder / "xla/pjrt/c/pjrt_c_api.h").exists():
        pytest.skip("TensorFlow's wheel has no xla/pjrt/c/pjrt_c_api.h")
    return folder


def structures(header: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the names of structures and of their fields, without the prefix of C."""
    for name, body in re.findall(r"^(?:typedef )?struct (?:PJRT_)?(\w+) \{\n(.*?)^\}", header, re.S | re.M):
        code = re.sub(r"//.*", "", body)
        code = re.sub(r"union \{|\};", "", code)
        fields = re.findall(r"\(\*(\w+)\)\(|\b(\w+);|_PJRT_API_STRUCT_FIELD\(PJRT_(\w+)\)", code)
        yield name, [next(filter(None, field)) for field in fields]


def constants(header: str) -> list[str]:
    enums = re.findall(r"typedef enum \{(.*?)\}", header, re.S)
    return re.findall(r"^\s*PJRT_(\w+)", "".join(enums), re.M)


def program(header: str, ours: bool) -> str:
    """Returns a program that prints all compared values of one of the two declarations."""
    prefix = "trivium::pjrt::" if ours else "PJRT_"
    top = '#include "pjrt/abi/table.h"' if ours else '#include "xla/pjrt/c/pjrt_c_api.h"'
    lines = [f'printf("{name} %d\\n", (int){prefix}{name});' for name in constants(header)]
    for name, fields in structures(header):
        lines.append(f'printf("{name} %zu\\n", sizeof({prefix}{name}));')
        for field in fields:
            member = field if ours or name != "Api" or not is_function(header, field) else f"PJRT_{field}"
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof({prefix}{name}, {member}));')
    version = "trivium::pjrt::kMinorVersion" if ours else "PJRT_API_MINOR"
    lines.append(f'printf("version %d\\n", {version});')
    body = "\n  ".join(lines)
    return f"#include <cstddef>\n#include <cstdio>\n{top}\nint main() {{\n  {body}\n}}\n"


def is_function(header: str, field: str) -> bool:
    return f"_PJRT_API_STRUCT_FIELD(PJRT_{field})" in header


def output(folder: Path, source: str, include: Path) -> list[str]:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    folder.mkdir()
    (folder / "print.cc").write_text(source)
    flags = ["-std=c++20", "-Wno-invalid-offsetof", "-I", str(include)]
    subprocess.run([compiler, *flags, "print.cc", "-o", "print"], cwd=folder, check=True)
    return subprocess.run([folder / "print"], check=True, capture_output=True, text=True).stdout.splitlines()


def differences(ours: list[str], theirs: list[str]) -> dict[str, int]:
    """Returns by how much values that both declarations have differ, where they do."""
    mine, published = (dict(line.split() for line in lines) for lines in (ours, theirs))
    assert mine.keys() == published.keys()
    return {name: int(mine[name]) - int(number) for name, number in published.items() if mine[name] != number}


def test_declaration_equals_the_published_header(tmp_path: Path) -> None:
    headers = include()
    header = (headers / "xla/pjrt/c/pjrt_c_api.h").read_text()
    ours = output(tmp_path / "ours", program(header, ours=True), NATIVE)
    theirs = output(tmp_path / "theirs", program(header, ours=False), headers)
    assert len(theirs) > 900
    assert differences(ours, theirs) == {"version": 3, "Api": 8}, "0.92 added a function to the table of 0.90"


def test_declaration_of_the_profiler_equals_the_published_header(tmp_path: Path) -> None:
    headers, path = include(), "xla/backends/profiler/plugin/profiler_c_api.h"
    header = (headers / path).read_text()
    found = [(re.sub("^PLUGIN_Profiler_", "", name), fields) for name, fields in structures(header)]

    def sizes(prefix: str, top: str) -> str:
        lines = [f'printf("{name} %zu\\n", sizeof({prefix}{name}));' for name, _ in found]
        lines += [f'printf("{n}.{f} %zu\\n", offsetof({prefix}{n}, {f}));' for n, fields in found for f in fields]
        return f"#include <cstddef>\n#include <cstdio>\n{top}\nint main() {{ {' '.join(lines)} }}\n"

    ours = output(tmp_path / "ours", sizes("trivium::profiler::", '#include "pjrt/abi/profiler.h"'), NATIVE)
    theirs = output(tmp_path / "theirs", sizes("PLUGIN_Profiler_", f'#include "{path}"'), headers)
    assert len(theirs) > 40
    assert ours == theirs


EXTENSIONS = ("ffi", "layouts", "memory_descriptions")


@pytest.mark.parametrize("name", EXTENSIONS)
def test_declarations_of_extensions_equal_the_published_headers(name: str, tmp_path: Path) -> None:
    """The published names of functions in an extension begin with a prefix that ours lack."""
    headers, path = include(), f"xla/pjrt/c/pjrt_c_api_{name}_extension.h"
    found = list(structures((headers / path).read_text()))

    def sizes(prefix: str, top: str, *, ours: bool) -> str:
        lines = [f'printf("{name} %zu\\n", sizeof({prefix}{name}));' for name, _ in found]
        for name, fields in found:
            for field in fields:
                member = field.removeprefix("PJRT_") if ours else field
                lines.append(f'printf("{name}.{field} %zu\\n", offsetof({prefix}{name}, {member}));')
        return f"#include <cstddef>\n#include <cstdio>\n{top}\nint main() {{ {' '.join(lines)} }}\n"

    mine = output(tmp_path / "ours", sizes("trivium::pjrt::", '#include "pjrt/abi/extensions.h"', ours=True), NATIVE)
    theirs = output(tmp_path / "theirs", sizes("PJRT_", f'#include "{path}"', ours=False), headers)
    assert len(theirs) > 10
    # 0.93 added the layouts of a program's arguments.
    assert differences(mine, theirs) == ({"Layouts_Extension": 8} if name == "layouts" else {})


def test_sizes_of_what_later_versions_added() -> None:
    """TensorFlow's wheel has the headers of 0.90; the published ones of 0.93 state these sizes."""
    sizes = {
        "Device_GetAttributes_Args": 56, "Layouts_PJRT_Executable_GetParameterLayouts_Args": 40,
        "Shardings_Extension": 40, "Shardings_PJRT_Executable_ParameterShardings_Args": 48,
        "Shardings_PJRT_Executable_OutputShardings_Args": 48,
    }  # fmt: skip
    structures = abi().structures
    assert {name: ctypes.sizeof(structures[name]) for name in sizes} == sizes
    assert abi().constants["Extension_Type_Shardings"] == 19
    assert abi().functions[-1] == "Device_GetAttributes"


def test_sizes_of_the_callbacks_extension() -> None:
    """Its header is not in TensorFlow's wheel; the published one states these sizes."""
    sizes = {
        "Extension": 40, "RegisterCallback_Args": 40, "InvokeCallback_Args": 32, "PrefatalArgs": 32,
    }  # fmt: skip
    structures = abi().structures
    assert {name: ctypes.sizeof(structures[f"Callback_{name}"]) for name in sizes} == sizes
    assert [abi().constants[f"Callback_Type_{name}"] for name in ("Tpu_SliceBuilder", "Prefatal")] == [1, 2]
    assert abi().constants["Extension_Type_Callback"] == 14


def test_element_types_have_the_numbers_of_the_header() -> None:
    declared = (NATIVE / "pjrt/abi/values.h").read_text()
    numbers = re.findall(r"Buffer_Type_(\w+),", declared)
    assert numbers[0] == "INVALID"
    assert list(TYPES.values()) == list(range(1, len(numbers)))
    short = {"bool": "pred", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128", "token": "token"}
    for name, number in TYPES.items():
        expected = short.get(name) or re.sub(
            r"^(uint|int|float)", lambda m: {"uint": "u", "int": "s", "float": "f"}[m[1]], name
        )
        assert numbers[number].lower() == expected.replace("_", "")


def test_the_plugin_announces_what_the_reader_takes() -> None:
    source = (NATIVE / "pjrt/plugin.cc").read_text()
    announced = re.findall(r"k(?:Current|Minimum)Version\[\] = \{([\d, ]+)\}", source)
    assert announced == [", ".join(map(str, version)) for version in (CURRENT, FIRST)]
