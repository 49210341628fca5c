"""JAX's own tests on Trivium's device, beside JAX's own CPU platform: `python -m tests.suites.jax --tests CHECKOUT`,
where CHECKOUT has JAX's folder `tests` at the tag of the installed version. Tests are a seeded sample; only those that
pass on the CPU are run here. Results of several calls are joined in one file, from which the page `docs/jax.md` is
written."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.suites.jax.comparison import CPU, compare_all, compare_failing, run_here
from tests.suites.jax.page import page
from tests.suites.kept import load, store
from tests.suites.runs import ROOT, Choice, File, Limits, Outcome, Record, run

FILES = (
    "lax_test", "lax_numpy_test", "lax_numpy_operators_test", "lax_numpy_reducers_test", "lax_numpy_einsum_test",
    "nn_test", "lax_control_flow_test", "random_test", "random_lax_test", "lax_autodiff_test", "lax_vmap_test",
    "linalg_test", "api_test", "dtypes_test", "export_test", "array_test", "pjit_test", "shard_map_test",
    "python_callback_test", "ffi_test", "buffer_callback_test", "memories_test", "debugging_primitives_test",
    "layout_test",
    "lobpcg_test", "svd_test", "eigh_test", "qdwh_test", "jet_test", "lax_scipy_test", "lax_scipy_sparse_test",
    "lax_scipy_special_functions_test", "scipy_stats_test", "scipy_fft_test", "scipy_interpolate_test",
    "scipy_ndimage_test", "scipy_optimize_test", "scipy_signal_test", "scipy_spatial_test", "image_test", "fft_test",
    "sparse_test", "sparse_bcoo_bcsr_test", "sparsify_test", "cholesky_update_test", "ode_test", "polynomial_test",
    "stax_test", "optimizers_test", "custom_api_test", "custom_linear_solve_test", "custom_root_test",
    "custom_partitioning_test", "shard_alike_test", "linalg_sharding_test", "multi_device_test", "checkify_test",
    "async_collectives_test", "control_deps_test", "array_interoperability_test", "aot_test", "error_check_test",
    "debugger_test", "debug_nans_test", "transfer_guard_test", "string_array_test", "profiler_test",
    "colocated_python_test", "jaxpr_effects_test", "x64_context_test", "xla_metadata_test", "scheduling_groups_test",
    "export_serialization_back_compat_test", "lax_vmap_op_test", "lax_numpy_indexing_test", "lax_numpy_vectorize_test",
    "lax_numpy_setops_test", "hijax_test", "lax_numpy_ufuncs_test", "ann_test", "random_impl_test", "stateful_rng_test",
    "core_test", "generated_fun_test", "array_extensibility_test", "array_api_test", "tree_util_test", "key_reuse_test",
    "name_stack_test", "mutable_array_test", "batching_test", "state_test", "pmap_test", "compilation_cache_test",
    "pallas/pallas_test", "pallas/ops_test", "pallas/indexing_test", "pallas/pallas_vmap_test",
    "pallas/pallas_shape_poly_test", "pallas/pallas_cost_estimate_test", "pallas/fusion_test",
    "pallas/fuser_block_spec_test", "pallas/fuser_utils_test", "pallas/einshape_test",
)  # fmt: skip

DEFAULT, X64 = "default", "x64"

ALL, FAILING = "all", "failing"

AS_CPU = {"PYTEST_PLUGINS": "tests.suites.jax.as_cpu"}


@dataclass(frozen=True)
class Job:
    """One file in one mode."""

    file: str
    mode: str

    @property
    def key(self) -> str:
        return f"{self.file} {self.mode}"


def main() -> None:
    options = arguments()
    chosen = [Job(file, mode) for mode in options.modes for file in options.files]
    results = load(options.results)
    if not options.page_only:
        with ThreadPoolExecutor(options.jobs) as pool:
            for key, result in pool.map(lambda job: (job.key, _result(job, options)), chosen):
                kinds = Counter(kind for kind, *_ in result["outcomes"].values())
                print(key, {name: result[name] for name in ("chosen", "asked")}, dict(kinds), flush=True)
                # Read again: another process may have added to it.
                results = load(options.results) | {key: result}
                store(options.results, results)
    if options.page is not None:
        options.page.write_text(page(results))


def _result(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    return renewed(job, load(options.results)[job.key], options) if options.only else compare(job, options)


def renewed(job: Job, before: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """The result of a file of which some tests run again, here only."""
    tests = [test for test in before["outcomes"] if any(part in test for part in options.only)]
    return before | {"outcomes": before["outcomes"] | run_here(partial(_run, job, options), tests)}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.suites.jax", description=__doc__)
    parser.add_argument("--tests", type=Path, help="the checkout")
    parser.add_argument("--files", nargs="+", default=FILES, help="names without `.py`")
    parser.add_argument("--modes", nargs="+", default=[DEFAULT], choices=[DEFAULT, X64])
    parser.add_argument("--sample", type=float, default=0.2, help="the share of the tests that is run")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--asked", choices=[ALL, FAILING], default=ALL, help="tests that the CPU platform runs, too")
    parser.add_argument("--cases", type=int, default=3, help="JAX_NUM_GENERATED_CASES")
    parser.add_argument("--jobs", type=int, default=1, help="files at the same time")
    parser.add_argument("--only", nargs="+", help="ids of tests to run again, or parts of them")
    parser.add_argument("--test-limit", type=float, default=120, help="seconds for a test")
    parser.add_argument("--file-limit", type=float, default=1800, help="seconds for a file on a platform")
    parser.add_argument("--results", type=Path, default=ROOT / "out/jax_suite/results.json")
    parser.add_argument("--cpu-results", type=Path, default=ROOT / "out/jax_suite/cpu", help="folder of what is kept")
    parser.add_argument("--page", type=Path, help="write the page there")
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    options = parser.parse_args()
    if options.tests is None and not options.page_only:
        parser.error("--tests is missing")
    return options


def compare(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    """The outcomes here of the tests of a file that pass on JAX's CPU platform."""
    run = partial(_run, job, options)
    if options.asked == FAILING and not _kept(job, options).exists():
        found = compare_failing(run, Choice(options.sample, options.seed))
    else:
        found = compare_all(run, _on_cpu(job, options))
    return {"share": options.sample, "seed": options.seed, "cases": options.cases, **vars(found)}


def _on_cpu(job: Job, options: argparse.Namespace) -> Record:
    """Once for each sample: later calls find it kept."""
    kept = _kept(job, options)
    if kept.exists():
        data = json.loads(kept.read_text())
        outcomes = {test: Outcome(*outcome) for test, outcome in data["outcomes"].items()}
        return Record(data["collected"], data["chosen"], outcomes)
    record = _run(job, options, CPU, Choice(options.sample, options.seed))
    store(kept, asdict(record))
    return record


def _kept(job: Job, options: argparse.Namespace) -> Path:
    return options.cpu_results / f"{job.file}-{job.mode}-{options.sample}-{options.seed}-{options.cases}.json"


def _run(job: Job, options: argparse.Namespace, platform: str, choice: Choice, as_cpu: bool = False) -> Record:
    environment = {
        "JAX_PLATFORMS": platform,
        "JAX_NUM_GENERATED_CASES": str(options.cases),
        "JAX_ENABLE_X64": "1" if job.mode == X64 else "0",
        "JAX_SKIP_SLOW_TESTS": "1",
        "TRIVIUM_NUM_DEVICES": _devices(options.tests / "tests" / f"{job.file}.py"),
        **(AS_CPU if as_cpu else {}),
    }
    limits = Limits(options.test_limit, options.file_limit)
    return run(File(options.tests, f"tests/{job.file}.py", environment), choice, limits)


def _devices(file: Path) -> str:
    """As many as the file asks for of JAX's CPU platform."""
    asked = re.search(r"request_cpu_devices\((\d+)\)", file.read_text())
    return asked[1] if asked else "1"


if __name__ == "__main__":
    main()
