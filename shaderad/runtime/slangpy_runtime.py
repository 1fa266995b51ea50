"""Programs on slangpy, which compiles the Slang text itself for Vulkan, D3D12, Metal or CUDA.

Invariants: text reaches slangpy's in-process compiler only after the child process has compiled
it, because a crash in process would end the user's program. Host writes are recorded like other
commands, so they keep their order without waits.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.cache import default_cache
from shaderad.compiler.launch_shapes import FEWEST_LANES
from shaderad.compiler.library import library_path, modules_of
from shaderad.diagnostics import Error, error
from shaderad.diagnostics.progress import Work
from shaderad.ir.dimensions import Dimension
from shaderad.runtime import slangpy_textures
from shaderad.runtime.base import STAGING_KEPT_BYTES, Runtime
from shaderad.runtime.capabilities import Capabilities, Kind, limited
from shaderad.runtime.clocks.of_slangpy import SlangpyClock
from shaderad.runtime.devices import DeviceInfo, choose, has_nvidia_driver
from shaderad.runtime.guard import guarded, shortened
from shaderad.runtime.idle_buffers import DeviceBuffer
from shaderad.runtime.process import keep_for_ever
from shaderad.runtime.routes import Route, check_compiles
from shaderad.runtime.slangpy_module import spy
from shaderad.runtime.slangpy_recording import (
    BoundRoot,
    SlangpyCommands,
    SlangpyPipeline,
    writable,
)
from shaderad.runtime.texture_store import Bound
from shaderad.runtime.textures import (
    DeviceTexture,
    SamplerSettings,
    StagedRows,
    TextureLayout,
)

FEATURES = {
    "float-atomics": spy.Feature.atomic_float,
    "subgroups": spy.Feature.wave_ops,
    "half": spy.Feature.half,
    "double": spy.Feature.double,
    "int64-atomics": spy.Feature.atomic_int64,
}
"""The features of slangpy that each of our features needs."""

FORMATS = ("spirv", "hlsl", "metal", "wgsl")
"""Formats of builds. Their Slang text is compiled anew, so any with fitting features will do."""

APIS_BY_PLATFORM = {"win32": ("d3d12", "vulkan", "cuda"), "darwin": ("metal",)}
OTHER_APIS = ("vulkan", "cuda")

SOFTWARE_NAMES = ("llvmpipe", "swiftshader", "microsoft basic render")

STORAGE_BUFFER_LIMIT = 30
"""slangpy reports no limit. Metal has 31 buffer slots, one for the words; other APIs have more."""

TEXTURE_LIMIT, SAMPLER_LIMIT = 128, 16
"""slangpy reports no limits. Metal and D3D12 have this many slots, other APIs at least as many."""

BINDING_BYTES_LIMIT = (1 << 32) - 4
"""slangpy reports no limit. Shaders count words in 32 bits; lavapipe reports 128 MiB, but
reached further in a measurement."""

UNIFORM_BYTES_LIMIT = 1 << 16
GROUP_BYTES_LIMIT = 1 << 15
UNFREED_LIMIT = 16384
"""Dispatches between two waits that free their resources. Each may hold a memory mapping. Linux
allows 65,530 per process, and Mesa ends the process beyond that."""

FREED_TOGETHER = 64
"""The fewest dispatches for which slangpy's own wait is called while the device is idle. For fewer,
the call takes longer than the dispatches."""

STORAGE_USAGE = (
    spy.BufferUsage.shader_resource
    | spy.BufferUsage.unordered_access
    | spy.BufferUsage.copy_source
    | spy.BufferUsage.copy_destination
)

PARTS_OF_CUDA = {
    "compiler 'nvrtc'": "NVRTC (`libnvrtc.so`)",
    "cuda_fp16.h": "the header of half (`cuda_fp16.h`)",
}
"""The words of Slang's message about a missing part of CUDA's toolkit -> the name of the part."""

SMALLEST_STAGING_BYTES = 256
PROGRAMS_PER_SESSION = 8
"""Programs that one Slang session compiles. A session keeps all of them, some megabytes each, until
the last of their pipelines ends. Opening a session takes as long as compiling a small program."""


# -- adapters --------------------------------------------------------------------------------------


def list_devices() -> list[DeviceInfo]:
    """Every adapter of every API of slangpy on this platform."""
    # slangpy would print to standard output that CUDA has no driver.
    adapters = [
        (api, adapter.name)
        for api in APIS_BY_PLATFORM.get(sys.platform, OTHER_APIS)
        if api != "cuda" or has_nvidia_driver()
        for adapter in spy.Device.enumerate_adapters(spy.DeviceType[api])
    ]
    return [
        DeviceInfo(
            runtime="slangpy", index=index, adapter=name, kind=_kind(name), api=api, driver=""
        )
        for index, (api, name) in enumerate(adapters)
    ]


def open_device(wanted: str | int | None, limits: Mapping[str, Any]) -> SlangpyRuntime:
    """Opens the adapter that matches `wanted`, which may name an API such as `cuda`."""
    adapters = list_devices()
    info = choose("slangpy", adapters, wanted)
    # By position: a machine may have several adapters of one name.
    same_api = [adapter for adapter in adapters if adapter.api == info.api]
    native = spy.Device.enumerate_adapters(spy.DeviceType[info.api])[same_api.index(info)]
    return SlangpyRuntime(_create(info, native.luid), limits, owns_device=True)


def wrap_device(device: Any, limits: Mapping[str, Any]) -> SlangpyRuntime:
    """Uses a device that the caller created and owns."""
    return SlangpyRuntime(device, limits, owns_device=False)


def _create(info: DeviceInfo, luid: list[int]) -> Any:
    """Opens a device with slangpy's own caches, or without them if their folder is not writable."""
    folder = default_cache().usable(create=True)
    options: dict[str, Any] = {
        "type": spy.DeviceType[info.api],
        "adapter_luid": luid,
        "enable_hot_reload": False,
        "enable_rhi_validation": False,
        "enable_ray_tracing": False,
    }
    # Without caches slangpy compiles its own modules for each device: 0.9 s instead of 0.2 s.
    caches: dict[str, Any] = {}
    if folder is not None:
        caches["module_cache_path"] = folder / "slangpy" / "modules"
        caches["shader_cache_path"] = folder / "slangpy" / "shaders"
    try:
        with contextlib.suppress(
            RuntimeError
        ):  # All failures except that of the folder repeat below.
            return spy.Device(**options, **caches)
        return spy.Device(**options)
    except RuntimeError as failure:
        raise error(
            "SR0603", runtime="slangpy", adapter=info.adapter, reason=shortened(str(failure))
        ) from None


def _kind(adapter: str) -> Kind:
    """The kind of an adapter; slangpy reports only names, which identify software drivers."""
    return "software" if any(name in adapter.lower() for name in SOFTWARE_NAMES) else "unknown"


def _adds_in_groups(info: Any) -> bool:
    """True if float atomics work in group memory, too.

    slangpy does not report the feature of Vulkan for that, which some drivers lack; those with
    these names have it.
    """
    if info.type is not spy.DeviceType.vulkan:
        return info.type is spy.DeviceType.cuda
    return any(name in info.adapter_name.lower() for name in ("nvidia", *SOFTWARE_NAMES))


def _capabilities(device: Any) -> Capabilities:
    info = device.info
    features = frozenset(ours for ours, theirs in FEATURES.items() if theirs in device.features)
    if info.type is spy.DeviceType.cuda:
        features |= {"double"}  # A type of the language, which slangpy does not list.
    limits = info.limits
    group_counts = limits.max_compute_dispatch_thread_groups
    return Capabilities(
        runtime="slangpy",
        adapter=info.adapter_name,
        kind=_kind(info.adapter_name),
        api=info.type.name,
        driver=info.api_name,
        features=features,
        formats=FORMATS,
        atomics="native" if "float-atomics" in features else "compare-exchange",
        has_group_float_atomics=_adds_in_groups(info),
        # Mesa's lavapipe crashes on the code that slangpy compiles from the exchange loop.
        survives_exchange=_kind(info.adapter_name) != "software",
        storage_buffer_limit=STORAGE_BUFFER_LIMIT,
        binding_bytes_limit=BINDING_BYTES_LIMIT,
        binding_alignment=0,  # slangpy binds ranges of buffers only from C++
        buffer_bytes_limit=BINDING_BYTES_LIMIT,
        uniform_bytes_limit=UNIFORM_BYTES_LIMIT,
        workgroup_count_limit=min(group_counts.x, group_counts.y, group_counts.z),
        workgroup_threads_limit=limits.max_compute_threads_per_group,
        group_bytes_limit=GROUP_BYTES_LIMIT,
        subgroup_size=(max(FEWEST_LANES, limits.min_wave_size) if "subgroups" in features else 1),
        texture_formats=slangpy_textures.formats(device, spy.FormatSupport.shader_load),
        filtered_formats=slangpy_textures.formats(device, spy.FormatSupport.shader_sample),
        texture_extent_limits=(
            limits.max_texture_dimension_1d,
            min(limits.max_texture_dimension_2d, limits.max_texture_dimension_cube),
            limits.max_texture_dimension_3d,
        ),
        texture_layer_limit=limits.max_texture_layers,
        has_line_levels=True,
        texture_limit=TEXTURE_LIMIT,
        sampler_limit=SAMPLER_LIMIT,
    )


# -- programs --------------------------------------------------------------------------------------


class SlangpyRuntime(Runtime):
    """A runtime over one `slangpy.Device`."""

    foreign_errors = (RuntimeError, spy.SlangCompileError, MemoryError)
    native_buffer = spy.Buffer
    native_texture = spy.Texture

    def __init__(self, device: Any, limits: Mapping[str, Any], *, owns_device: bool) -> None:
        capabilities = limited(_capabilities(device), limits)
        super().__init__(device, capabilities, owns_device=owns_device)
        self._sessions: dict[tuple[Path | None, tuple[str, ...]], tuple[Any, int]] = {}
        """Sessions by their imports, with the number of programs that they may still compile."""
        self._encoder: Any = None
        self._compute: Any = None
        self._last_submission: int | None = None
        self._unfreed_count = 0
        """Dispatches since slangpy last freed the resources of finished ones."""
        # The owner of a wrapped device may submit to it as well; tested with Vulkan only.
        self._knows_all_work = owns_device and capabilities.api == "vulkan"
        self._staging: dict[int, Any] = {}

    def new_native(self, size: int) -> Any:
        return self.native.create_buffer(size=size, usage=STORAGE_USAGE)

    def translate(self, failure: Exception, byte_count: int = 0) -> Error:
        # slang-rhi reports only "failed" if memory is short; these calls have no other failure.
        if "createBuffer" in str(failure) or "createTexture" in str(failure):
            failure = MemoryError(shortened(str(failure)))
        return super().translate(failure, byte_count)

    def record_write(self, buffer: DeviceBuffer, offset: int, content: memoryview) -> None:
        self._commands().upload_buffer_data(buffer.native, offset, writable(content))

    def read_back(self, parts: Sequence[tuple[Any, int, int]], total: int) -> memoryview:
        staging = self._staging_buffer(total)
        encoder = self._commands()
        start = 0
        for native, offset, size in parts:
            encoder.copy_buffer(staging, start, native, offset, size)
            start += size
        self.submit()
        self._await_submission()
        return memoryview(staging.to_numpy()).cast("B")

    def _staging_buffer(self, byte_count: int) -> Any:
        # `to_numpy` copies the whole buffer, so small reports need a small one.
        size = max(SMALLEST_STAGING_BYTES, 1 << (byte_count - 1).bit_length())
        if size > STAGING_KEPT_BYTES:
            return self._new_staging(byte_count)
        if size not in self._staging:
            self._staging[size] = self._new_staging(size)
        return self._staging[size]

    def _new_staging(self, size: int) -> Any:
        return self.native.create_buffer(
            size=size,
            memory_type=spy.MemoryType.read_back,
            usage=spy.BufferUsage.copy_destination,
        )

    def new_texture(self, layout: TextureLayout) -> Any:
        return slangpy_textures.new_texture(self.native, layout)

    def texture_views(self, layout: TextureLayout, native: Any) -> dict[Dimension, Any]:
        return slangpy_textures.views_of(self.native, layout, native)

    def wrapped_views(self, layout: TextureLayout, native: Any) -> dict[Dimension, Any]:
        return slangpy_textures.wrapped_views_of(layout, native)

    def layout_of(self, native: Any, dimension: Dimension | None) -> TextureLayout:
        return slangpy_textures.layout_of(native, dimension)

    def new_sampler(self, settings: SamplerSettings) -> Any:
        return slangpy_textures.new_sampler(self.native, settings)

    def record_texture_write(self, texture: DeviceTexture, level: int, content: memoryview) -> None:
        slangpy_textures.write_level(self._commands(), texture, level, content)

    def read_rows(self, texture: DeviceTexture, rows: StagedRows) -> memoryview:
        staging = self._staging_buffer(rows.byte_count)
        slangpy_textures.copy_level(self._commands(), texture, rows, staging)
        self.submit()
        self._await_submission()
        return memoryview(staging.to_numpy()).cast("B")

    def compiled(self, program: Program) -> tuple[Code, Route]:
        return check_compiles(program, self.capabilities)

    def make_pipeline(self, program: Program, code: Code, serial: int) -> SlangpyPipeline:
        del code  # slangpy compiles the text again.
        # Modules of a session need unique names, and two programs may share a kernel's name.
        name = f"{program.name}_{hashlib.sha256(program.slang.encode()).hexdigest()[:16]}"
        try:
            with Work(program.name, "Slang and driver, in slangpy", blocks_python=True):
                session = self._session(program)
                module = session.load_module_from_source(name, _in_first_space(program.slang))
                entry_point = module.entry_point(program.name)
                linked = session.link_program([module], [entry_point])
                native = self.native.create_compute_pipeline(linked)
        except self.foreign_errors as failure:
            raise _not_compiled(program, str(failure)) from None
        return SlangpyPipeline(program, native, serial, linked, self.native)

    def _session(self, program: Program) -> Any:
        """A Slang session that imports only the library modules that the program imports."""
        key = (program.library, modules_of(program))
        session, remaining = self._sessions.get(key, (None, 0))
        if not remaining:
            options = spy.SlangCompilerOptions()
            options.include_paths = list(library_path(library=key[0], modules=key[1]))
            options.matrix_layout = spy.SlangMatrixLayout.row_major
            session = self.native.create_slang_session(
                compiler_options=options, add_default_include_paths=False
            )
            remaining = PROGRAMS_PER_SESSION
        self._sessions[key] = session, remaining - 1
        return session

    def new_clock(self) -> SlangpyClock | None:
        has_clock = self.native.info.timestamp_frequency > 0
        return SlangpyClock(self.native) if has_clock else None

    def new_commands(self) -> SlangpyCommands:
        return SlangpyCommands(self.bound_root, partial(self.allocate, zeroed=True))

    def record_commands(self, commands: SlangpyCommands, serials: Sequence[int]) -> None:
        del serials
        if self._unfreed_count + commands.dispatch_count > UNFREED_LIMIT:
            self._unfreed_count = UNFREED_LIMIT
            self.submit()
        self._unfreed_count += commands.dispatch_count
        for dispatches, transfers in commands.sections:
            timed = self.clock.next_writes() if self.clock is not None and dispatches else None
            if timed is not None:
                self._commands().write_timestamp(*timed)
            if dispatches:
                if self._compute is None:
                    self._compute = self._commands().begin_compute_pass()
                bind, dispatch = self._compute.bind_pipeline, self._compute.dispatch_compute
                for pipeline, (root, write), words, groups in dispatches:
                    if write is not None:
                        write(words)
                    bind(pipeline, root)
                    dispatch(groups)
            if timed is not None:
                pool, index = timed
                self._commands().write_timestamp(pool, index + 1)
            for transfer, arguments in transfers:
                transfer(self._commands(), *arguments)

    def bound_root(self, pipeline: SlangpyPipeline, resources: Sequence[Bound]) -> BoundRoot:
        """The root object of a pipeline and its resources.

        A dispatch copies the words of the root object when it is recorded.
        """
        key = (pipeline.serial, *[resource.serial for resource in resources])
        bound = self.bindings.find(key)
        if bound is None:
            bound = self._new_root(pipeline, resources)
            self.bindings.keep(key, bound)
        return bound

    def _new_root(self, pipeline: SlangpyPipeline, resources: Sequence[Bound]) -> BoundRoot:
        root = self.native.create_root_shader_object(pipeline.linked)
        cursor = spy.ShaderCursor(root)
        for field, binding, bound in zip(
            pipeline.storage_fields, pipeline.storage_bindings, resources, strict=True
        ):
            self.check_bound(pipeline.program.name, binding, bound)
            native = bound.native
            if isinstance(bound, DeviceTexture):
                native = slangpy_textures.bound_as(binding, bound)
            cursor.get_field_by_index(field).write(native)
        if pipeline.words_field is None or not pipeline.words_bytes:
            return root, None
        block: Any = cursor.get_field_by_index(pipeline.words_field).dereference()
        return root, block.set_data

    def _commands(self) -> Any:
        """The command encoder, after the end of the open pass."""
        if self._compute is not None:
            compute, self._compute = self._compute, None
            compute.end()
        if self._encoder is None:
            self._encoder = self.native.create_command_encoder()
        return self._encoder

    def is_idle(self) -> bool:
        last = self._last_submission
        return last is None or self.native.is_submit_finished(last)

    def submit_recorded(self) -> None:
        if self._encoder is not None:
            encoder = self._commands()
            self._encoder = None
            if self._unfreed_count >= FREED_TOGETHER and self.is_idle():
                self._free_released()
            self._last_submission = self.native.submit_command_buffer(encoder.finish())
        if self._unfreed_count == UNFREED_LIMIT:
            self._await_submission()
            self._free_released()

    @guarded
    def wait(self) -> None:
        self.submit()
        self._await_submission()
        if self._unfreed_count >= FREED_TOGETHER:
            self._free_released()

    def _await_submission(self) -> None:
        if self._last_submission is not None:
            # slangpy's own wait holds the GIL: no thread runs and no interrupt arrives.
            with self.first_runs():
                submission = self._last_submission
                self.await_device(partial(self.native.is_submit_finished, submission))
            self._last_submission = None
        if not self._knows_all_work:
            self._free_released()

    def _free_released(self) -> None:
        """Waits in slangpy, where slang-rhi frees the resources of finished dispatches and buffers.

        A submission frees them as well, but takes longer while the device works.
        """
        self.native.wait()
        self._unfreed_count = 0

    def give_up_idle(self) -> None:
        self.wait()
        self.forget(self.pool.give_up_idle())
        self._free_released()

    def drop_recorded(self) -> None:
        self._compute = None
        self._encoder = None

    def leave(self) -> None:
        super().leave()
        if self.is_out_of_reach:
            _forget_closing()

    def release(self) -> None:
        self._staging = {}
        if self.owns_device:
            self.native.close()


def _not_compiled(program: Program, reason: str) -> Error:
    """The error for a program that slangpy did not compile, perhaps for lack of a part of CUDA."""
    for words, part in PARTS_OF_CUDA.items():
        if words in reason:
            return error("SR0637", program=program.name, part=part)
    return error("SR0617", program=program.name, reason=shortened(reason))


def _forget_closing() -> None:
    """Prevents slangpy from closing its devices at the end of the process, which waits for each.

    slangpy closes them in an unnamed exit function, and when its module is finalised.
    """
    keep_for_ever(sys.modules["slangpy.slangpy_ext"])
    for function in gc.get_objects():
        if type(function).__name__ == "nb_func" and not function.__name__:
            atexit.unregister(function)


def _in_first_space(slang: str) -> str:
    """`slang` with all resources in set 0: slang-rhi ends the process for other sets.

    Resources are bound by name, so the set does not matter.
    """
    slang = re.sub(r"(\[\[vk::binding\(\d+), \d+\)", r"\1, 0)", slang)
    return re.sub(r"( : register\(\w+), space\d+\)", r"\1, space0)", slang)
