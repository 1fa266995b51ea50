"""Waits of wgpu: polls that do not block, so that interrupts arrive and other threads run.

`map_async` of wgpu-py waits in a thread of its own, and handing its result over takes longer than a
small dispatch.
"""

from __future__ import annotations

from typing import Any

from shaderad.runtime.wgpu_pipelines import ffi, lib, native_api

_PENDING = 0
"""No status that wgpu reports."""


def is_queue_empty(device: Any) -> bool:
    """True if the device has finished all submissions; frees what it has finished with."""
    # wgpu-native sets only the lowest byte of the result.
    return lib.wgpuDevicePoll(device._internal, False, ffi.NULL) & 0xFF != 0


def check_not_lost(device: Any) -> None:
    """Raises a `GPUError` of wgpu-py if the device is lost. Polls do not report it."""
    # The cheapest call that wgpu refuses then; others end the process.
    create = native_api._api.libf.wgpuDeviceCreatePipelineLayout
    layout = create(device._internal, ffi.new("WGPUPipelineLayoutDescriptor *"))
    lib.wgpuPipelineLayoutRelease(layout)


@ffi.callback("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)")
def _note(status: int, message: Any, place: Any, _: Any) -> None:
    del message
    ffi.cast("uint32_t *", place)[0] = status


class StagedRead:
    """A read of the first bytes of a staging buffer, which it maps.

    Keep the object until `is_done` has returned true, because wgpu writes to it.
    """

    def __init__(self, device: Any, staging: Any, byte_count: int) -> None:
        self._device = device
        self._staging = staging
        self._byte_count = byte_count
        self._status = ffi.new("uint32_t *", _PENDING)
        callback = ffi.new("WGPUBufferMapCallbackInfo *")
        callback.mode = lib.WGPUCallbackMode_AllowProcessEvents
        callback.callback, callback.userdata1 = _note, self._status
        native_api._api.libf.wgpuBufferMapAsync(
            staging._internal, lib.WGPUMapMode_Read, 0, byte_count, callback[0]
        )

    def is_done(self) -> bool:
        """Polls the device; true once the buffer is mapped.

        Raises:
            GPUError: The device is lost.
            RuntimeError: wgpu could not map the buffer.
        """
        if self._status[0] == _PENDING:
            is_queue_empty(self._device)
        if self._status[0] == _PENDING:
            return False
        # A buffer of a lost device may count as mapped, but its address ends the process.
        check_not_lost(self._device)
        if self._status[0] != lib.WGPUMapAsyncStatus_Success:
            raise RuntimeError(f"wgpu mapped no buffer, status {self._status[0]}")
        return True

    def taken(self) -> memoryview:
        """A copy of the bytes; the buffer is no longer mapped then."""
        native = self._staging._internal
        start = lib.wgpuBufferGetConstMappedRange(native, 0, self._byte_count)
        content = memoryview(bytearray(ffi.buffer(start, self._byte_count)))
        lib.wgpuBufferUnmap(native)
        return content
