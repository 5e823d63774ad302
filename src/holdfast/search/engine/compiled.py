"""How kernels are compiled, and where the machine code is kept.

Numba keeps machine code beside the source of a function and compiles anew when that file changes, but not when a
function of another file does. So the folder that it is kept in has the digest of all sources of the engine in its name.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import NativeLowering

LOG = logging.getLogger(__name__)


@register_pass(mutates_CFG=False, analysis_only=False)
class _ForCallers(LoweringPass):
    """Hand a kernel to its callers as it was written down, without machine code of its own.

    Numba optimises every function with all that it calls, and again as a part of each caller: of kernels nested ten
    deep, that takes several times as long as once for all. Only an `entry` is ever run.
    """

    _name = "for_callers"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        library = state.library
        library._optimize_final_module = lambda: None
        library._finalize_final_module = lambda: setattr(library, "_finalized", True)
        # Callers find a kernel by a C function of its own; this one raises.
        state["cr"] = state["cr"]._replace(cfunc=[].remove)
        state.targetctx.insert_user_function(state["cr"].cfunc, state["cr"].fndesc, [library])
        return True


class _KernelCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        self.state.flags.no_compile = True
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_ForCallers, NativeLowering)
        passes.finalize()
        return [passes]


# Kernels are called by kernels alone: a way in from Python takes long to compile. They allocate nothing, so that
# nothing has to be counted when arrays are handed on (_nrt). A division by 0 is infinite, as in torch.
_njit: Any = numba.njit
kernel = _njit(
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
    nogil=True,
    error_model="numpy",
    _nrt=False,
    pipeline_class=_KernelCompiler,
)


def entry(function: Callable[..., Any]) -> Any:
    """Compile a kernel that Python calls; the machine code is kept in the user's cache folder."""
    settings: Any = numba.config
    before, settings.CACHE_DIR = settings.CACHE_DIR, str(cache_folder())
    try:
        return _njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # there is no folder that can be written to
        return _njit(nogil=True, error_model="numpy")(function)
    finally:
        settings.CACHE_DIR = before


def record(**fields: type) -> np.dtype[np.void]:
    """The type of a record with these fields, as compiled code lays it out."""
    return np.dtype(list(fields.items()), align=True)


def cache_folder() -> Path:
    """Where the machine code of these sources is kept."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    read = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    return _user_cache() / "holdfast" / f"engine-{numba.__version__}-{read}"


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@contextmanager
def announced(function: Any) -> Iterator[None]:
    """Say that an entry is compiled, where it is not known yet: that takes seconds, once for every version."""
    waits = not function.signatures and not any(cache_folder().rglob(f"*.{function.__name__}-*.nbi"))
    start = time.perf_counter()
    if waits:
        LOG.warning("compiling the search for this machine: about twenty seconds, once")
    yield
    if waits:
        LOG.info("compiled in %.0f s, kept in %s", time.perf_counter() - start, cache_folder())
