"""SR06: devices, dispatches, and reports of running kernels."""

from __future__ import annotations

from functools import partial

from shaderad.diagnostics.errors import (
    BoundsError,
    CompileError,
    DeviceError,
    GradientError,
    LimitError,
    Message,
    MissingPackageError,
    ShapeError,
)

_FIRST = (
    "reports since the last synchronisation: {count}; this is the lowest element of the first "
    "dispatch with reports, and the first statement there"
)

_bounds = partial(Message, BoundsError)
_compile = partial(Message, CompileError)
_device = partial(Message, DeviceError)
_gradient = partial(Message, GradientError)
_limit = partial(Message, LimitError)
_shape = partial(Message, ShapeError)

MESSAGES: dict[str, Message] = {
    "SR0601": _device(
        "there is no runtime `{name}`",
        help="use {runtimes}, or one of them with an adapter, such as `wgpu:0`",
    ),
    "SR0602": _device(
        "`{runtime}` has no adapter `{wanted}`",
        label="{found}",
        help="`shaderad doctor` lists drivers and adapters, and says what is missing",
    ),
    "SR0603": _device(
        "`{runtime}` could not open `{adapter}`",
        note="{reason}",
        help="`shaderad doctor` lists drivers and adapters, and says what is missing",
    ),
    "SR0604": _device(
        "the device `{adapter}` was lost",
        note="{reason}",
        help="open a new device; the content of arrays on the lost one is gone",
    ),
    "SR0605": _device(
        "`{adapter}` has no room for {byte_count} more bytes",
        note="{reason}",
        help="drop arrays and pullbacks that are no longer needed, or work on smaller pieces",
    ),
    "SR0606": _device(
        "an array of {byte_count} bytes is larger than `{adapter}` lets a kernel reach",
        label="the limit is {limit} bytes per array",
        help="access it only at the Index, so that it runs in windows (docs/limitations.md), split "
        "it and call the kernel once per piece, or open another device",
    ),
    "SR0607": _device(
        "`{program}` binds {count:storage buffer|storage buffers}, more than `{adapter}` has",
        label="the limit is {limit}",
        help="put arrays that belong together into one array of structs, or split the kernel",
    ),
    "SR0608": _device(
        "`{program}` needs {missing}, which `{adapter}` does not have",
        help="open another device; `shaderad doctor` lists what each of them can do",
    ),
    "SR0609": _device(
        "bug in shaderad, stage runtime: `{runtime}` refused a command",
        note="{reason}\ncommands recorded since the last submission are dropped",
        help="please report it together with the kernel",
    ),
    "SR0610": _device(
        "the device `{adapter}` is closed",
        help="open a new one with `sad.open_device()`",
    ),
    "SR0611": _device(
        "`{program}` was dispatched with {groups:workgroup|workgroups}",
        label="`{adapter}` takes at most {limit} along one dimension",
        help="choose a smaller `dim`",
    ),
    "SR0612": _compile(
        "`{program}` cannot run on `{adapter}`: wgpu's shader reader refuses it",
        note="{reason}",
        help="open a slangpy device, or simplify the kernel; please report it",
    ),
    "SR0639": _compile(
        "`{program}` cannot run on `{adapter}`: wgpu reads its code but creates no pipeline",
        note="{reason}",
        help="open a slangpy device, or simplify the kernel; please report it",
    ),
    "SR0623": _compile(
        "`{program}` cannot run on `{adapter}`: wgpu's shader reader gave no answer",
        note="{reason}",
        help="call again with more free memory: the reader was stopped or killed\n"
        "unroll less, by `sad.range` in place of `sad.static_range`; or open a slangpy device",
    ),
    "SR0613": _device("there is no limit `{name}`", help="use one of {known}"),
    "SR0621": _device(
        "limit `{name}` takes `{wanted}`; a number must not be negative",
        label="found {found}",
        help="`device.capabilities` shows what the device has",
    ),
    "SR0624": partial(Message, MissingPackageError)(
        "`shaderad.{name}` needs {library}, which is not installed",
        help="run `pip install shaderad[{name}]`",
    ),
    "SR0625": partial(Message, MissingPackageError)(
        "runtime `{runtime}` needs the package `{runtime}`, which is not installed",
        note="`pip install shaderad` brings it, `pip install --no-deps shaderad` does not",
        help="run `pip install {runtime}`, or open a device of another runtime",
    ),
    "SR0622": _device(
        "{what} was opened in another process, from which this one was forked",
        help='start processes by `spawn`, as `multiprocessing.set_start_method("spawn")` does, '
        "or open the device after the fork",
    ),
    "SR0614": _device(
        "bug in shaderad, stage runtime: slot {slot} of `{program}` has no resource to bind, or "
        "one of another kind",
        help="please report it together with the kernel",
    ),
    "SR0615": _device(
        "bug in shaderad, stage runtime: `{program}` takes {expected} bytes of parameters, "
        "but got {found}",
        help="please report it together with the kernel",
    ),
    "SR0619": _device(
        "`from_native` takes a buffer of `{runtime}`",
        label="this is a `{found}`",
        help="pass a `{wanted}` of the device that the array is for",
    ),
    "SR0620": _device(
        "a device is named by text, an adapter by text or its position",
        label="found {found}",
        help='write `sad.open_device("wgpu", adapter=0)`',
    ),
    "SR0616": _device(
        "`native=` takes a {classes}",
        label="this is a `{found}`",
    ),
    "SR0617": _compile(
        "slangpy could not compile `{program}`",
        note="{reason}",
        help="please report it together with the kernel",
    ),
    "SR0618": _device(
        "bug in shaderad, stage runtime: bytes {start} to {end} of a buffer of {byte_count}",
        help="please report it together with the kernel",
    ),
    "SR0626": _device(
        "`{program}` binds {count:texture|textures}, more than `{adapter}` has",
        label="the limit is {limit}",
        help="put pictures of one size and format into the layers of one `Texture2DArray`, or "
        "split the kernel",
    ),
    "SR0627": _device(
        "`{adapter}` has no textures of format `{format}`",
        label="it has {known}",
        help="write one of these as `format`",
    ),
    "SR0628": _device(
        'a texture of dimension "{dimension}" with {extent:texel|texels} along an axis',
        label="`{adapter}` has at most {limit}",
        help="make it smaller, or split it; `render.texture` looks up arrays of any size",
    ),
    "SR0629": _device(
        '`{name}` is read as a texture of dimension "{wanted}"',
        label='found one of dimension "{found}"',
        help='pass `dimension="{wanted}"` to `sad.texture` if the shape is ambiguous',
    ),
    "SR0630": _device(
        "`{name}` is sampled, and `{adapter}` does not filter its format `{format}`",
        label="it filters {known}",
        help='make the texture in one of these, such as by `format="rgba16float"`; or read it by '
        "`.load`, or as an array by `render.texture`, which filters in float32 on every device",
    ),
    "SR0631": _device(
        "`Texture.from_native` takes a `{wanted}`",
        label="this is a `{found}`",
        help="pass a texture of the device that kernels run on",
    ),
    "SR0632": _device(
        "kernels cannot read this texture",
        label="found {found}",
        note="a texture has one sample, and is a line, a picture, layers, a volume, or six faces",
        help="make it in a format of `sad.texture` (docs/runtimes.md), with the usages {usage}; "
        "`dimension=` may be left out",
    ),
    "SR0633": _device(
        "bug in shaderad, stage runtime: {found} for level {level} of a texture with "
        "{level_count:level|levels}",
        help="please report it together with the kernel",
    ),
    "SR0634": _device(
        "`{program}` binds {count:sampler|samplers}, more than `{adapter}` has",
        label="the limit is {limit}",
        help="share one sampler among textures with the same settings, or split the kernel",
    ),
    "SR0635": _device(
        "slangpy cannot bind `{name}`, a cube from `Texture.from_native`, as six planes",
        note="derivatives of lookups in a cube load texels of its faces",
        help="make it by `sad.texture`, open a device of wgpu, or pass the faces as an array to "
        "`render.texture`",
    ),
    "SR0636": _device(
        'textures of dimension "1d" on `{adapter}` have one level',
        help="leave the mips out, or make a picture of one row: `sad.texture(image[None], ...)`",
    ),
    "SR0637": _compile(
        "`{program}` cannot be compiled for CUDA here: {part} is missing",
        note="the driver runs kernels, the toolkit compiles them",
        help="install the CUDA toolkit; name its folder in CUDA_PATH, and that of `libnvrtc.so` in "
        "LD_LIBRARY_PATH. A Vulkan driver needs neither: `shaderad doctor` says how to install it",
    ),
    "SR0638": _device(
        '`adapter="auto"` chooses by {variable}, which is not a number',
        label="found {found}",
        help="start the program by a launcher such as `torchrun`, which numbers its processes from "
        "0, or leave {variable} unset",
    ),
    "SR0640": _device(
        "a texture with {count:layer|layers}",
        label="`{adapter}` has at most {limit}",
        help="split the layers among several textures",
    ),
    "SR0650": _device(
        "{subject} lives on another device",
        label="it is on {found}, the call runs on {device}",
        help="each call of `sad.open_device` opens another device: open one, first of all, or copy "
        "the array, `sad.array(x, device=device)`; `x.device` is that of an array",
    ),
    "SR0651": _device(
        "`device` takes what `sad.open_device` returns",
        label="found a `{found}`",
        help="write `device = sad.open_device()` and pass that",
    ),
    "SR0652": _device(
        "a profile is entered twice",
        help="write `with sad.profile() as profile:` for each part of a program",
    ),
    "SR0653": _device(
        "there is no timeline: this device has no timestamp queries",
        help="`print(profile)` shows counts and bytes; another device of `sad.devices()` may have "
        "times",
    ),
    "SR0654": _device(
        "there is no timeline: the profile has not ended",
        help="call `profile.chrome_trace(path)` after the end of `with sad.profile() as profile:`",
    ),
    "SR0660": _bounds(
        "index {index} is out of range for {array} of length {length}{place}",
        note="reports since the last synchronisation: {count}; this was the first",
        help='guard the index, or call with `bounds="ignore"`: reads then give 0, writes nothing',
    ),
    "SR0661": _limit(
        "a loop{place} ran past its limit of {length:iteration|iterations}",
        note="reports since the last synchronisation: {count}; the loop was cut off there",
        help="raise `limit`, or let the loop end earlier",
    ),
    "SR0662": _bounds(
        "assertion failed{place}: {name}",
        note="reports since the last synchronisation: {count}; this was the first",
    ),
    "SR0663": _bounds(
        "division by zero{place}",
        note="reports since the last synchronisation: {count}; the result was taken to be 0",
        help="guard the divisor",
    ),
    "SR0664": _bounds(
        "`{name}` has the length {length}{place}, expected {index}",
        note="reports since the last synchronisation: {count}; this was the first",
        help="pass arrays of the sizes that the kernel expects",
    ),
    "SR0665": _bounds(
        "position {index} is out of range for an axis of length {length}",
        help="positions count from 0, or from the end if negative",
    ),
    "SR0666": _bounds(
        "`{name}` is {value}{place}, element {element}",
        note=_FIRST,
        help="look at what this line reads: a division by 0, a logarithm or root of a negative "
        "number, an overflow, or an array that held it before",
    ),
    "SR0667": _gradient(
        "the tangent of `{name}` is {value}{place}, element {element}",
        note=_FIRST,
        help="this line has no finite derivative there (docs/conventions.md lists the singular "
        "points); keep its operands away from it",
    ),
    "SR0668": _gradient(
        "the cotangent of `{name}` is {value}{place}, element {element}",
        label="this line computes it",
        note=_FIRST,
        help="this line has no finite derivative there (docs/conventions.md lists the singular "
        "points); keep its operands away from it",
    ),
    "SR0669": _bounds(
        "element {index} of `{name}` is written twice{place}",
        note="reports since the last synchronisation: {count}; elements are counted row-major; "
        "an Out written at computed indices takes one write per element, as `sad.unique` promises",
        help="use an Add, Min or Max array where several threads meet",
    ),
    "SR0671": _bounds(
        "index {index} is out of range for a length of {length}, in `{function}`",
        help="guard the index",
    ),
    "SR0672": _limit(
        "a loop of `{function}` ran past its limit of {text}",
        help="raise `limit`, or let the loop end earlier",
    ),
    "SR0673": _bounds("assertion failed in `{function}`: {text}"),
    "SR0674": _bounds(
        "division by zero in `{function}`",
        help="guard the divisor; in a kernel the result is 0, and it is reported",
    ),
    "SR0675": _bounds(
        "index {index} is out of range for {name} of length {length}",
        help='guard the index, or pass `bounds="ignore"`: reads then give 0, writes nothing',
    ),
    "SR0677": _device(
        "the report buffer holds a report that no kernel of this device writes",
        note="site {site}, index {index}, length {length}",
        help="a kernel of a corrupt build, or code other than shaderad's, wrote to the buffer",
    ),
    "SR0678": _limit(
        "a graph needs more than {limit} dispatches, copies and fills",
        help="loop inside a kernel, or call the graph for fewer iterations at a time",
    ),
    "SR0676": _shape(
        "`{name}` has no thread {thread} over `dim={dim}`",
        help="name a thread by its index, or by its row-major number from 0",
    ),
}
