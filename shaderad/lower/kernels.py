"""A kernel, mode and variant -> dispatches, as Slang modules.

The stages in order: write numbers, outputs, jumps, refusals, strategies, ranges, adjoint,
functions, bindings, entry point.
"""

from __future__ import annotations

from dataclasses import replace

from shaderad.bodies.liveness import live_before
from shaderad.bodies.outputs import Resolved, resolve_outputs
from shaderad.bodies.ranges import marked
from shaderad.bodies.reaches import OWN, reaches
from shaderad.bodies.structured import structured
from shaderad.bodies.write_numbers import numbered
from shaderad.diagnostics import Span, error, nesting
from shaderad.ir.nodes import (
    Accumulate,
    AccumulateGradient,
    Assign,
    Buffer,
    Kernel,
    Return,
    SlangKernel,
    Stmt,
    Zero,
)
from shaderad.ir.prints import silent
from shaderad.ir.types import INT, VOID, Access, Type, is_differentiable
from shaderad.ir.verifier import verified
from shaderad.ir.walk import reachable, reads, statements, writes
from shaderad.lower.bindings import Addition, Lowered, Mode, Variant
from shaderad.lower.entry.copies import write_copies
from shaderad.lower.entry.points import (
    ENTRY_NAME,
    group_limit,
    is_single_group,
    note_needs,
    sum_bytes,
    write_decoder,
    write_entry,
    write_outputs,
)
from shaderad.lower.entry.scope import EntryScope
from shaderad.lower.entry.slang_entries import lower_slang_kernel
from shaderad.lower.prepare import refusals
from shaderad.lower.prepare.held_sums import held_count, may_hold
from shaderad.lower.prepare.known import folded_names, folded_parameters
from shaderad.lower.prepare.strategy import NOTHING_HOISTED, choose
from shaderad.lower.prepare.watches import Watch
from shaderad.lower.write.functions import FunctionWriter, write_function
from shaderad.lower.write.module import Module
from shaderad.lower.write.own_arrays import passes
from shaderad.lower.write.programs import assemble
from shaderad.lower.write.tags import Tags
from shaderad.lower.write.text import Piece
from shaderad.rules.nodes import Adjoint, PushedKernel, primal_name
from shaderad.rules.pulling.bodies import pull_kernel_body
from shaderad.rules.pulling.functions import Adjoints
from shaderad.rules.pulling.uniformity import uniform_additions
from shaderad.rules.pushing.kernels import push_kernel
from shaderad.rules.transforms import Transforms


def lower_kernel(kernel: Kernel, mode: Mode, variant: Variant) -> tuple[Lowered, ...]:
    """The dispatches of `kernel` in `mode`, in order of execution.

    Raises:
        LanguageError, DerivativeError: See ``bodies/outputs.py`` and ``lower/prepare/refusals.py``.
        CompileError: SR0753, a built kernel has no body.
    """
    if kernel.is_built:
        raise error("SR0753", kernel=kernel.name)
    if isinstance(kernel, SlangKernel):
        return (lower_slang_kernel(kernel, mode, variant),)
    if mode is not Mode.PRIMAL:
        kernel = silent(kernel)
    with nesting(kernel.name, kernel.span):
        return _dispatches(kernel, mode, variant)


def _dispatches(kernel: Kernel, mode: Mode, variant: Variant) -> tuple[Lowered, ...]:
    transforms = Transforms()
    kernel = transforms.kernel(kernel)
    if mode is not Mode.PRIMAL:
        kernel = numbered(kernel)
    extremes = [b for b in kernel.buffers if b.access in (Access.MIN, Access.MAX)]
    if mode is Mode.FORWARD:
        main = _forward(kernel, transforms, variant)
    else:
        main = _lower(kernel, mode, variant, transforms)
    if mode is Mode.PRIMAL:
        used = {name for r in main.resources for name in r.members}
        decoders = (_decoder(kernel, b, variant, is_first=b.name not in used) for b in extremes)
        return (*passes(main), *decoders)
    if any(is_differentiable(b.type.element) for b in extremes):
        plain = replace(variant, wanted=frozenset(), accumulate=False, checks="")
        winners = (
            _lower(kernel, Mode.WINNER, plain, transforms, second_pass=p) for p in (False, True)
        )
        return (*winners, main)
    return (main,)


def _forward(kernel: Kernel, transforms: Transforms, variant: Variant) -> Lowered:
    """The dispatch of the kernel with tangents, whose added arrays the host binds as tangents."""
    pushed = push_kernel(kernel, variant.wanted, transforms, is_first=True)
    dots = pushed.dots
    shaped = {dots[name] for name in variant.launch_shaped if name in dots}
    uniforms = {dots[u.name] for u in kernel.uniforms if u.name in dots}
    pushed_variant = replace(
        variant,
        wanted=frozenset(),
        launch_shaped=variant.launch_shaped | shaped,
        device_uniforms=variant.device_uniforms | uniforms,
    )
    return _lower(pushed, Mode.FORWARD, pushed_variant, transforms)


def _lower(
    kernel: Kernel,
    mode: Mode,
    variant: Variant,
    transforms: Transforms,
    *,
    second_pass: bool = False,
) -> Lowered:
    verified(kernel)
    resolved = resolve_outputs(kernel, variant.launch_shaped)
    verified(kernel, resolved.body, resolved.local_types)
    plain = structured(resolved.body, VOID, resolved.local_types)
    resolved = replace(resolved, body=plain.body, local_types=plain.local_types)
    verified(kernel, resolved.body, resolved.local_types)
    refusals.check_kernel(kernel)
    refusals.check_depth(resolved.body, kernel.span)
    strategies = NOTHING_HOISTED
    if mode in (Mode.BACKWARD, Mode.FORWARD):
        elsewhere = frozenset(b.name for b in kernel.buffers) - set(resolved.own)
        at_zero = kernel.index_names if variant.is_one_thread else ()
        refusals.check_writes(kernel, resolved.body, elsewhere, at_zero)
    if mode is Mode.BACKWARD:
        strategies = choose(kernel, resolved.body, variant.wanted)
        refusals.check_strategies(kernel, strategies)
        resolved = replace(resolved, body=strategies.apply(resolved.body))
    types = {**strategies.types(kernel), **resolved.local_types}
    module = Module(kernel, mode, variant, strategies, transforms, write_function)
    module.is_second_winner_pass = second_pass
    module.shown_names |= {s.name: kernel.buffer(s.buffer).shown_name for s in resolved.sums}
    if variant.is_windowed:
        reach_by_array = reaches(kernel, resolved.body, types, module.primals)
        module.arrays.reaches = reach_by_array | dict.fromkeys(resolved.own, OWN)
    marks = marked(kernel, resolved.body, types, variant.natural, module.primals)
    verified(kernel, marks, types)
    return _write(module, replace(resolved, body=marks))


def _write(module: Module, resolved: Resolved) -> Lowered:
    """Writes the parts of a module."""
    adjoint = None
    if module.mode is Mode.BACKWARD:
        adjoint = _adjoint(module, resolved)
        hoisted = {h.name for h in module.strategies.hoisted}
        unread = frozenset(hoisted - reads(adjoint.body))
        module.strategies = replace(module.strategies, unread=unread)
        read = tuple(p for p in adjoint.parameters if p.name not in unread)
        adjoint = replace(adjoint, parameters=read)
    body = resolved.body if adjoint is None else adjoint.body
    module.folded_parameters = folded_parameters(body, module.transforms.function)
    # Entry points take their names before functions do.
    name = stem = module.names.make(module.kernel.name)
    if module.mode is Mode.FORWARD:
        stem = module.names.make(primal_name(module.kernel))
    module.names.make(f"{stem}_{module.mode.value}", ENTRY_NAME)
    if adjoint is None:
        body_text: Piece | None = _write_body(module, resolved, name)
    else:
        variant = module.variant
        if variant.adds_together:
            module.uniform_additions = _uniform_additions(module, adjoint)
        # Threads that meet at barriers repeat the last index, and would hold its additions twice.
        if may_hold(variant) and not module.goes_past_end:
            module.held_counts = _held_counts(module, adjoint)
        name, body_text = module.function(adjoint), None
    entry = EntryScope(module, resolved, name)
    note_needs(entry)
    # The entry point may add tags, and tags may add words: `assemble` declares words last.
    strategies = module.strategies
    for h in strategies.hoisted:
        is_read = h.name not in strategies.unread
        (module.arrays.reader_tag if is_read else module.arrays.tag)(h.buffer)
    for s in resolved.sums:
        module.arrays.tag(s.buffer)
    module.arrays.note_tags({b: b not in strategies.exclusive for b in module.variant.wanted})
    declarations = module.arrays.bind()
    additions = () if adjoint is None else _additions(module, adjoint)
    if module.variant.copies and not is_single_group(entry):
        added = {a.array for a in additions if a.by == "thread"} | _added(resolved)
        write_copies(module, declarations, added, sum_bytes(entry))
    entry_name, entry_tags, entry_text = write_entry(entry)
    tags = Tags(module).write()
    outputs = write_outputs(module, resolved) if adjoint is None else None
    parts = [declarations, tags, entry_tags, *module.pieces, outputs, body_text, entry_text]
    return Lowered(
        program=assemble(module, entry_name, parts),
        mode=module.mode,
        resources=tuple(module.arrays.resources),
        words=tuple(module.words),
        sites=tuple(module.sites),
        group_limit=group_limit(entry),
        group_indices=module.group_indices,
        copies=tuple(name for _, name in module.arrays.copies),
        is_single_group=is_single_group(entry),
        strategies=dict(strategies.by_name),
        additions=additions,
        is_windowed=module.variant.is_windowed,
        body=body,
        index_names=module.kernel.index_names,
    )


def _adjoint(module: Module, resolved: Resolved) -> Adjoint:
    """The adjoint of the kernel's body."""
    kernel, wanted = module.kernel, module.variant.wanted
    elements = module.strategies.types(kernel)
    parameters = {u.name: u.type for u in kernel.uniforms} | elements
    floats = {name for name, t in parameters.items() if is_differentiable(t)}
    summed = {b.name for b in kernel.buffers if b.access is Access.IN and b.name in wanted}
    written = {b.name for b in kernel.buffers if b.access is not Access.IN}
    functions = Adjoints(
        wanted=frozenset(summed - module.strategies.exclusive.keys()),
        seeds=frozenset(filter(module.has_cotangent, written - set(resolved.own))),
        derivatives=module.transforms,
    )
    own = [n for n in resolved.own if is_differentiable(kernel.buffer(n).type.element)]
    results = [*filter(module.has_cotangent, own)]
    results += [s.name for s in resolved.sums if module.has_cotangent(s.buffer)]
    adjoint = pull_kernel_body(
        functions,
        kernel,
        resolved.body,
        {**resolved.local_types, **elements},
        parameters,
        frozenset(floats & (wanted | elements.keys())),
        tuple(results),
        resolved.locals if module.gives_results else (),
    )
    types = {p.name: p.type for p in adjoint.parameters}
    verified(kernel, adjoint.body, {**adjoint.local_types, **types})
    return adjoint


def _uniform_additions(module: Module, adjoint: Adjoint) -> list[AccumulateGradient]:
    uniform = [u.name for u in module.kernel.uniforms]
    uniform += [h.name for h in module.strategies.uniform]
    inputs = frozenset(b.name for b in module.kernel.buffers if b.access is Access.IN)
    additions = uniform_additions(adjoint, uniform, inputs)
    return [s for s in additions if module.is_wanted(s.buffer)]


def _held_counts(module: Module, adjoint: Adjoint) -> dict[str, int]:
    # A custom derivative may store behind a pointer, so the order of additions matters.
    names = [b.name for b in module.kernel.buffers if not b.is_pointed and module.is_wanted(b.name)]
    most = module.variant.shape.held_additions
    counts = {name: held_count(adjoint, name, most) for name in names}
    return {name: count for name, count in counts.items() if count}


def _write_body(module: Module, resolved: Resolved, name: str) -> Piece:
    """The body as a function of indices, uniforms and hoisted elements."""
    kernel = module.kernel
    piece = Piece(kernel.span)
    uniforms = {u.name: u.type for u in kernel.uniforms}
    indices: dict[str, Type] = dict.fromkeys(kernel.index_names, INT)
    parameters = {**indices, **uniforms, **module.strategies.types(kernel)}
    types = {**parameters, **resolved.local_types}
    folded = folded_names(resolved.body, {})
    watch = Watch(module.mode, kernel.shown if isinstance(kernel, PushedKernel) else {})
    writer = FunctionWriter(module, piece, types, folded=folded, watch=watch)
    spelled = [f"{module.types.spell(t)} {writer.parameter(n)}" for n, t in parameters.items()]
    results = resolved.locals
    piece.open(f"{'Outputs' if results else 'void'} {name}({', '.join(spelled)})")
    for n in sorted(writes(resolved.body) & uniforms.keys()):
        writer.copy_parameter(n)
    # A `return` at the end is redundant, and would skip the return of the outputs.
    body: tuple[Stmt, ...] = tuple(s for s in resolved.body if not isinstance(s, Return))
    read_early = live_before(body, frozenset(results))
    start = tuple(Assign(name=n, value=Zero(type=types[n])) for n in results if n in read_early)
    writer.block((*start, *body))
    if results:
        piece.add(f"return Outputs({', '.join(writer.variable(n) for n in results)});")
    piece.close()
    return piece


def _additions(module: Module, adjoint: Adjoint) -> tuple[Addition, ...]:
    """The reads whose cotangents the adjoint adds to memory, in order of their lines."""
    is_uniform: dict[tuple[str, Span], bool] = {}
    by = "wave" if module.sums_in_waves else "group"
    for f in (adjoint, *reachable(adjoint.body)):
        for s in statements(f.body):
            if isinstance(s, AccumulateGradient):
                key = (s.buffer, s.span)
                is_uniform[key] = is_uniform.get(key, True) and module.is_uniform(s)
    ordered = sorted(is_uniform, key=lambda key: (key[1].line, key[1].column, key[0]))
    return tuple(Addition(*key, by if is_uniform[key] else "thread") for key in ordered)


def _added(resolved: Resolved) -> set[str]:
    """The arrays to which a body adds in memory."""
    bodies = (resolved.body, *(f.body for f in reachable(resolved.body)))
    every = (s for body in bodies for s in statements(body))
    return {s.buffer for s in every if isinstance(s, Accumulate)}


def _decoder(kernel: Kernel, b: Buffer, variant: Variant, *, is_first: bool) -> Lowered:
    module = Module(kernel, Mode.DECODE, variant, NOTHING_HOISTED, Transforms(), write_function)
    declarations, text, name = write_decoder(module, b, is_first=is_first)
    return Lowered(
        program=assemble(module, name, [declarations, text]),
        mode=Mode.DECODE,
        resources=tuple(module.arrays.resources),
        words=tuple(module.words),
        threads_of=b.name,
    )
