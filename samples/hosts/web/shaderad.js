// Runs kernels and graphs of a folder that `shaderad build --target wgsl` wrote, from manifest.json
// and the WGSL beside it. It has no dependencies, so you can copy this file.
//
//     const build = await load("out/mesh");
//     const kernel = await build.kernel("shade");
//     const { color } = await kernel.primal({ samples, ... }, { dim: [n] });
//     new Float32Array(await build.read(color));
//
//     const step = await build.graph("step").prepared("primal", [x], { 0: 0 });
//     for (let k = 0; k < 100; k++) step.run();      // output 0 is the next run's input 0
//
// Calls only record and submit. The next `read` throws the reports of threads, such as an index out
// of range, with the Python line. It also throws errors of WebGPU.

const SCHEMA = "shaderad-manifest";
const SCHEMA_VERSION = 3;
const TARGET = "wgsl";
const FEATURES = { half: "shader-f16", subgroups: "subgroups" };
// Requested if programs filter textures: without it, formats have at most 16 bits per channel.
const FILTERABLE = "float32-filterable";
// Raised to the limits of the adapter: WebGPU guarantees only 8 buffers of 128 MiB.
const LIMITS = ["maxBufferSize", "maxStorageBufferBindingSize", "maxStorageBuffersPerShaderStage"];
/** The dimensions of textures whose levels have equally many layers. */
const LAYERED = ["2d-array", "cube"];
const GROUPS_PER_ROW = 65535;
const REPORT_BYTES = 2080;
const WRAPS = ["repeat", "clamp", "mirror"];
const ADDRESS_MODES = { repeat: "repeat", clamp: "clamp-to-edge", mirror: "mirror-repeat" };
// Bits of a sampler's settings that follow those of its wrap modes: docs/manifest.md.
const [LINEAR, MIXES_LEVELS] = [1 << 6, 1 << 7];

/** An error in the folder, the device or an argument, described in one sentence. */
export class HostError extends Error {}

/**
 * Opens a build.
 * @param {string} folder The URL of the folder of manifest.json.
 * @param {GPUDevice} [device] Your own device, with the features that the build needs.
 */
export async function load(folder, device) {
  const response = await fetched(`${folder}/manifest.json`);
  const manifest = await response.json().catch(() => ({}));
  if (manifest.schema !== SCHEMA || manifest.schema_version !== SCHEMA_VERSION) {
    const found = `${manifest.schema} ${manifest.schema_version}`;
    throw new HostError(`${folder} has ${found}, this loader reads ${SCHEMA} ${SCHEMA_VERSION}`);
  }
  return new Build(folder, manifest, device ?? (await opened(manifest)));
}

async function fetched(url) {
  const response = await fetch(url).catch((failure) => ({ statusText: failure.message }));
  if (!response.ok) throw new HostError(`cannot read ${url}: ${response.statusText}`);
  return response;
}

/** A device with all features that programs of the manifest use. */
async function opened(manifest) {
  const gpu = globalThis.navigator?.gpu;  // Node 20 has no navigator.
  const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new HostError("this browser gives no WebGPU adapter");
  const programs = manifest.entries.flatMap((one) => one.targets[TARGET]?.programs ?? []);
  const wanted = [...new Set(programs.flatMap((one) => one.features))];
  const missing = wanted.filter((one) => !adapter.features.has(FEATURES[one]));
  if (missing.length) throw new HostError(`this device has no ${missing.join(", ")}`);
  const requiredLimits = Object.fromEntries(LIMITS.map((one) => [one, adapter.limits[one]]));
  const requiredFeatures = wanted.map((one) => FEATURES[one]);
  const filters = programs.some((one) => one.resources.some((each) => each.is_filtered));
  if (filters && adapter.features.has(FILTERABLE)) requiredFeatures.push(FILTERABLE);
  return adapter.requestDevice({ requiredFeatures, requiredLimits });
}

/**
 * Packed elements in a buffer; `shape` counts elements: a float3 is one.
 * @typedef {{buffer: GPUBuffer, offset: number, byteCount: number, shape: number[]}} DeviceArray
 */

class Build {
  #pipelines = new Map();
  #compiling = new Map();
  #sites = [];
  #siteBases = new Map();
  #report;
  #failure;

  constructor(folder, manifest, device) {
    this.folder = folder;
    this.manifest = manifest;
    this.types = manifest.types;
    this.device = device;
    this.#report = this.buffer(REPORT_BYTES);
    device.addEventListener("uncapturederror", ({ error }) => (this.#failure ??= error.message));
  }

  /** A kernel, ready to be called. */
  async kernel(name) {
    const { entry, target } = this.#found("kernel", name);
    await this.compile(target.programs);
    return new Kernel(this, entry, target);
  }

  /** A graph; the programs of a mode are compiled at its first run. */
  graph(name) {
    const { entry, target } = this.#found("graph", name);
    return new Graph(this, entry, target);
  }

  #found(kind, name) {
    const entry = this.manifest.entries.find((one) => one.kind === kind && one.name === name);
    if (!entry) throw new HostError(`${this.folder} has no ${kind} ${name}`);
    const target = entry.targets[TARGET];
    if (!target) throw new HostError(`${name} was not built for ${TARGET}`);
    return { entry, target };
  }

  /** Copies the bytes of packed elements to the device. @returns {DeviceArray} */
  array(data, element, shape) {
    const size = this.types[element].byte_count;
    if (data.byteLength % size) {
      throw new HostError(`${data.byteLength} bytes are no whole number of ${element}`);
    }
    const byteCount = data.byteLength;
    if (shape && product(shape) !== byteCount / size) {
      throw new HostError(`${byteCount / size} elements have no shape (${shape})`);
    }
    const buffer = this.buffer(byteCount);
    const bytes = new Uint8Array(up(byteCount, 4));
    bytes.set(new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, byteCount));
    this.device.queue.writeBuffer(buffer, 0, bytes);
    return { buffer, offset: 0, byteCount, shape: shape ?? [byteCount / size] };
  }

  /**
   * Makes a texture for kernel parameters such as `Texture2D`.
   * @param {ArrayBufferView[]} levels The bytes of each level, row after row.
   * @param {object} how `size`: texels along x, y and z; `format`: a format of WebGPU with one, two
   *     or four channels; `dimension`: "1d", "2d", "2d-array", "3d" or "cube"; layers and
   *     faces lie along z.
   * @returns {DeviceTexture}
   */
  texture(levels, { size, format = "rgba32float", dimension = "2d" }) {
    const [width, height = 1, depth = 1] = size;
    const { TEXTURE_BINDING, COPY_DST, COPY_SRC } = GPUTextureUsage;
    const texture = this.device.createTexture({
      size: [width, height, depth],
      format,
      dimension: LAYERED.includes(dimension) ? "2d" : dimension,
      mipLevelCount: levels.length,
      usage: TEXTURE_BINDING | COPY_DST | COPY_SRC,
    });
    const made = this.textureOf(texture, dimension);
    levels.forEach((data, mipLevel) => {
      const [columns, rows, layers] = made.extents(mipLevel);
      const layout = { bytesPerRow: data.byteLength / (rows * layers), rowsPerImage: rows };
      this.device.queue.writeTexture(
        { texture, mipLevel }, data, layout, [columns, rows, layers]);
    });
    return made;
  }

  /** A texture of yours, for kernels. @returns {DeviceTexture} */
  textureOf(texture, dimension = texture.dimension) {
    return new DeviceTexture(texture, dimension);
  }

  /**
   * Copies packed texels on the device to a level: floats, for formats with 32 bits per channel.
   * @param {DeviceArray} array Texels, such as those of the level after a gradient step.
   */
  copyToTexture({ buffer, offset, byteCount }, { texture, extents }, mipLevel = 0) {
    const [columns, rows, layers] = extents(mipLevel);
    const rowBytes = byteCount / (rows * layers);
    const encoder = this.device.createCommandEncoder();
    for (let row = 0; row < rows * layers; row++) {  // A single copy needs padding.
      const origin = [0, row % rows, Math.floor(row / rows)];
      encoder.copyBufferToTexture(
        { buffer, offset: offset + row * rowBytes }, { texture, mipLevel, origin }, [columns, 1, 1]);
    }
    this.device.queue.submit([encoder.finish()]);
  }

  /**
   * Makes a sampler for kernel parameters of type `Sampler`.
   * @param {object} how `filter` and `mipFilter`: "linear" or "nearest"; `wrap`: "repeat", "clamp"
   *     or "mirror".
   */
  sampler({ filter = "linear", wrap = "repeat", mipFilter = "linear" } = {}) {
    const mode = ADDRESS_MODES[wrap];
    if (!mode) throw new HostError(`wrap is one of ${WRAPS.join(", ")}, not ${wrap}`);
    const sampler = this.device.createSampler({
      magFilter: filter, minFilter: filter, mipmapFilter: mipFilter,
      addressModeU: mode, addressModeV: mode, addressModeW: mode,
    });
    const wraps = WRAPS.indexOf(wrap) * 0b010101;
    const settings = Uint32Array.of(
      wraps + (filter === "linear" && LINEAR) + (mipFilter === "linear" && MIXES_LEVELS));
    return { sampler, settings, offset: 0, byteCount: 0, shape: [] };
  }

  /** The bytes of an array; throws the first report of threads since the last read. */
  async read(array) {
    const [report, bytes] = await Promise.all([
      this.#copied({ buffer: this.#report, offset: 0, byteCount: 16 }),
      this.#copied(array),
    ]);
    if (this.#failure) throw new HostError(`WebGPU refuses a call: ${this.#failure}`);
    const [count, site, index, length] = new Uint32Array(report);
    if (count) {
      this.device.queue.writeBuffer(this.#report, 0, new Uint32Array(4));
      const { file, line, kind, name } = this.#sites[site - 1];
      throw new HostError(`${file}:${line}: ${kind} of ${name}: ${index} of ${length}`);
    }
    return bytes;
  }

  async #copied({ buffer, offset, byteCount }) {
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    const size = Math.max(4, up(byteCount, 4));
    const staging = this.device.createBuffer({ size, usage });
    const encoder = this.device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, offset, staging, 0, size);
    this.device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const bytes = staging.getMappedRange().slice(0, byteCount);
    staging.destroy();
    return bytes;
  }

  /** A buffer that repeats one 32-bit word; at least 16 bytes, because none may be empty. */
  buffer(byteCount, word = 0) {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const size = Math.max(16, up(byteCount, 4));
    const buffer = this.device.createBuffer({ size, usage, mappedAtCreation: word !== 0 });
    if (word) {  // New buffers of WebGPU are zero.
      new Uint32Array(buffer.getMappedRange()).fill(word);
      buffer.unmap();
    }
    return buffer;
  }

  /** Compiles the programs that are not compiled yet. */
  async compile(programs) {
    await Promise.all(programs.map((program) => {
      if (!this.#compiling.has(program.file)) {
        this.#compiling.set(program.file, this.#compile(program));
      }
      return this.#compiling.get(program.file);
    }));
  }

  async #compile(program) {
    this.#siteBases.set(program.file, this.#sites.length);
    this.#sites.push(...program.sites);
    const text = await (await fetched(`${this.folder}/${program.file}`)).text();
    const made = (entries) => this.device.createBindGroupLayout({ entries });
    // A build with `--space 2` leaves groups 0 and 1 to others; they are empty here.
    const empty = Array.from({ length: groupOf(program) }, () => made([]));
    const bindGroupLayouts = [...empty, made(layoutEntries(program))];
    const pipeline = await this.device.createComputePipelineAsync({
      layout: this.device.createPipelineLayout({ bindGroupLayouts }),
      compute: {
        module: this.device.createShaderModule({ code: text }),
        entryPoint: program.entry_point,
      },
    });
    this.#pipelines.set(program.file, pipeline);
  }

  siteBase(program) {
    return this.#siteBases.get(program.file);
  }

  /** Submits operations: dispatches, and copies as arguments of `copyBufferToBuffer`. */
  submit(operations) {
    const encoder = this.device.createCommandEncoder();
    let pass;
    for (const one of operations) {
      if (one.copy) {
        pass = pass?.end();
        encoder.copyBufferToBuffer(...one.copy);
        continue;
      }
      pass ??= encoder.beginComputePass();
      pass.setPipeline(one.pipeline);
      one.bindGroups.forEach((group, k) => pass.setBindGroup(k, group));
      pass.dispatchWorkgroups(...one.workgroups);
    }
    pass?.end();
    this.device.queue.submit([encoder.finish()]);
  }

  /** The operation of `groups` workgroups, with a buffer for each resource by name. */
  dispatch(program, bound, words, groups) {
    const pipeline = this.#pipelines.get(program.file);
    const constants = this.device.createBuffer({
      size: Math.max(16, up(4 * words.length, 16)),
      usage: GPUBufferUsage.UNIFORM,
      mappedAtCreation: true,
    });
    new Uint32Array(constants.getMappedRange()).set(words);
    constants.unmap();
    const resources = { ...bound, [program.parameters.name]: constants };
    for (const one of program.resources) if (isReport(one)) resources[one.name] = this.#report;
    const entries = places(program).map((one) => (
      { binding: one.place.binding, resource: boundAs(one, resources[one.name]) }));
    const last = groupOf(program);
    const bindGroups = Array.from({ length: last + 1 }, (_, k) => this.device.createBindGroup({
      layout: pipeline.getBindGroupLayout(k),
      entries: k === last ? entries : [],
    }));
    return { pipeline, bindGroups, workgroups: inRows(groups), file: program.file };
  }
}

/** All resources that the code of a program binds. */
function places({ parameters, resources }) {
  const all = [{ ...parameters, access: "uniform" }, ...resources];
  return all.filter(({ place }) => "binding" in place);
}

const groupOf = (program) => places(program)[0].place.set;

function layoutEntries(program) {
  const visibility = GPUShaderStage.COMPUTE;
  return places(program).map((one) => (
    { binding: one.place.binding, visibility, ...layoutOf(one) }));
}

function layoutOf({ access, view, is_filtered: isFiltered }) {
  const types = { read: "read-only-storage", write: "storage", uniform: "uniform" };
  if (access === "sampler") return { sampler: { type: "filtering" } };
  if (access !== "texture") return { buffer: { type: types[access] } };
  return { texture: { sampleType: isFiltered ? "float" : "unfilterable-float", viewDimension: view } };
}

/** The entry of a bind group for a buffer, texture or sampler. */
function boundAs({ access, view, name }, given) {
  if (access === "sampler" && given.sampler) return given.sampler;
  if (access === "texture" && given.texture) return given.seenAs(view);
  const isBuffer = access !== "sampler" && access !== "texture" && !given.sampler && !given.texture;
  if (isBuffer) return { buffer: given };
  throw new HostError(`${name} is a ${access}, and is given something else`);
}

/** A texture that kernels read; as an array it has one axis, the texels of all levels. */
class DeviceTexture {
  offset = 0;
  byteCount = 0;
  #views = {};

  constructor(texture, dimension) {
    this.texture = texture;
    this.dimension = dimension;
    const levels = Array.from({ length: texture.mipLevelCount }, (_, k) => this.extents(k));
    this.shape = [levels.map(product).reduce((left, right) => left + right)];
  }

  /** Texels along x, y and z on a level; z counts layers and the faces of a cube. */
  extents = (level) => {
    const { width, height, depthOrArrayLayers: depth } = this.texture;
    const halved = (extent) => Math.max(1, extent >> level);
    return [halved(width), halved(height), LAYERED.includes(this.dimension) ? depth : halved(depth)];
  };

  /** The uniform of its size: texels along x, y and z, and levels. */
  get size() {
    return Int32Array.of(...this.extents(0), this.texture.mipLevelCount);
  }

  seenAs(dimension) {
    return this.#views[dimension] ??= this.texture.createView({ dimension });
  }
}

const isReport = (resource) => resource.role === "report";
const inRows = (groups) => (groups <= GROUPS_PER_ROW
  ? [groups, 1] : [GROUPS_PER_ROW, Math.ceil(groups / GROUPS_PER_ROW)]);
const up = (number, step) => Math.ceil(number / step) * step;
const product = (numbers) => numbers.reduce((left, right) => left * right, 1);

/** The plan of a mode; `otherwise` is the reason if it is missing and the build gives none. */
function planOf({ entry, plans }, mode, otherwise) {
  if (plans[mode]) return plans[mode];
  const why = plans[`no_${mode}`]?.reason ?? otherwise;
  throw new HostError(`${entry.name} was built without ${mode}: ${why}`);
}

// -- Kernels ------------------------------------------------------------------------------------

class Kernel {
  constructor(build, entry, plans) {
    this.build = build;
    this.entry = entry;
    this.plans = plans;
  }

  /**
   * The arrays that the kernel writes, by name.
   * @param {Object<string, DeviceArray>} inputs Inputs by name: `mesh_colors` for `mesh.colors`.
   * @param {object} how `dim`: the number of threads along each axis; `uniforms`: typed arrays of
   *     32-bit words; `shapes`: the shapes of written arrays that differ from `dim`.
   * @returns {Promise<Object<string, DeviceArray>>}
   */
  primal(inputs, how) {
    return this.#run("primal", inputs, how);
  }

  /**
   * The gradient by each input, given the gradient by each output (`cotangents`; zeros if one is
   * missing). Kernels with a minimum or maximum also need `how.results`, the results of `primal`.
   * @returns {Promise<Object<string, DeviceArray>>}
   */
  backward(inputs, cotangents, how) {
    const bars = Object.entries(cotangents).map(([name, bar]) => [`${name} cotangent`, bar]);
    const given = { ...inputs, ...how.results, ...Object.fromEntries(bars) };
    return this.#run("backward", given, how);
  }

  async #run(mode, given, { dim, uniforms = {}, shapes = {} }) {
    const plan = planOf(this, mode, "nothing to differentiate by");
    uniforms = { ...this.#ofResources(given), ...uniforms };
    this.#checkUniforms(uniforms);
    const known = this.#sizes(given, dim, shapes);
    const arrays = plan.inputs.map((name, k) => (
      this.#array(name, given, evaluated(plan.buffers[k].byte_count, known))));
    const words = Object.fromEntries(Object.entries(uniforms).map(([name, one]) => (
      [name, new Uint32Array(one.buffer, one.byteOffset, one.byteLength / 4)])));
    const run = new Run(this.build, this.plans.programs, plan, arrays, known, words);
    await run.do(plan.commands);
    run.submit();
    const found = run.outputs();
    return Object.fromEntries(plan.outputs.map(({ name }, k) => [name.split(" ")[0], found[k]]));
  }

  #array(name, given, byteCount) {
    const array = given[name];
    if (!array && name.endsWith(" cotangent")) {
      return { buffer: this.build.buffer(byteCount), offset: 0, byteCount, shape: [] };
    }
    if (!array) throw new HostError(`no array is given for ${name}`);
    if (up(array.byteCount, 4) !== byteCount) {
      throw new HostError(`${name} has ${array.byteCount} bytes, not ${byteCount}`);
    }
    return array;
  }

  /** The sizes of textures and the settings of samplers, which are uniforms, by name. */
  #ofResources(given) {
    const found = {};
    for (const { name, path } of this.entry.inputs.filter((one) => one.resource)) {
      const part = this.entry.uniforms.filter((one) => one.path.slice(0, -1).join() === path.join());
      for (const one of part) found[one.name] = given[name]?.[one.path.at(-1)];
    }
    return found;
  }

  #checkUniforms(given) {
    for (const { name, type } of this.entry.uniforms) {
      const { scalars, pointers } = this.build.types[type];
      if (!given[name]) throw new HostError(`no value is given for ${name}`);
      const wanted = scalars.reduce((sum, one) => sum + (one.type === "double" ? 8 : 4), 0);
      if (!pointers?.length && given[name].byteLength !== wanted) {
        throw new HostError(`${name} takes ${wanted} bytes, not ${given[name].byteLength}`);
      }
    }
  }

  /** All extents by name: `dim.0` of the launch, `x.0` of array x. */
  #sizes(given, dim, shapes) {
    const { inputs, outputs } = this.entry;
    const missing = inputs.filter(({ name }) => !given[name]).map(({ name }) => name);
    if (missing.length) throw new HostError(`no array is given for ${missing.join(", ")}`);
    const found = Object.fromEntries([
      ...inputs.map(({ name }) => [name, given[name].shape]),
      ...outputs.map(({ name }) => [name, shapes[name] ?? dim]),
    ]);
    const known = Object.fromEntries(dim.map((extent, axis) => [`dim.${axis}`, extent]));
    for (const { name, shape: wanted } of [...inputs, ...outputs]) {
      const shape = found[name];
      if (shape.length !== wanted.length) {
        throw new HostError(`${name} has ${wanted.length} axes, not the shape (${shape})`);
      }
      wanted.forEach((size, axis) => {
        if ((known[size] ??= shape[axis]) !== shape[axis]) {
          throw new HostError(`${name} was built for the shape of dim, (${dim}), not (${shape})`);
        }
      });
    }
    return known;
  }
}

// -- Graphs: docs/plans.md ------------------------------------------------------------------------

class Graph {
  constructor(build, entry, plans) {
    this.build = build;
    this.entry = entry;
    this.plans = plans;
  }

  /**
   * Runs the plan of a mode: `primal` from the graph's inputs, `backward` from those and then a
   * cotangent for each output that holds floats. Arrays are given and returned in the order of the
   * plan's `inputs` and `outputs`.
   * @returns {Promise<DeviceArray[]>}
   */
  async run(mode, arrays) {
    const run = await this.#at(mode, arrays);
    await run.do(run.plan.commands);
    run.submit();
    return run.outputs();
  }

  /**
   * Prepares the same for many runs: buffers and bind groups are made once, and each `run` is one
   * submission, which reads the current content of `arrays`. After a run, the output `carries[k]`,
   * if there is one, is copied to input `k` for the next run.
   * @param {Object<number, number>} carries Indices of outputs by indices of inputs.
   * @returns {Promise<Prepared>}
   */
  async prepared(mode, arrays, carries = {}) {
    const run = await this.#at(mode, arrays);
    if (holdsWhile(run.plan.commands)) {
      throw new HostError(`${this.entry.name} looks when a loop is over: it cannot be prepared`);
    }
    await run.do(run.plan.commands);
    return new Prepared(run, arrays, carries);
  }

  async #at(mode, arrays) {
    const plan = planOf(this, mode, "build with --jvp");
    if (arrays.length !== plan.inputs.length) {
      throw new HostError(`${this.entry.name} takes ${plan.inputs}, not ${arrays.length} arrays`);
    }
    const names = new Set(programsOf(plan.commands));
    const programs = this.plans.programs.filter((one) => names.has(one.name));
    const sizes = this.#sizes(arrays);
    await this.build.compile(programs);
    return new Run(this.build, programs, plan, arrays, sizes);
  }

  /** The sizes that arguments determine; all arrays must agree on them. */
  #sizes(arrays) {
    const { inputs, sizes, assumes, name } = this.entry;
    const known = {};
    inputs.forEach(({ shape }, k) => shape.forEach((extent, axis) => {
      if (sizes.includes(extent)) known[extent] ??= arrays[k].shape[axis];
    }));
    const isRight = inputs.every(({ shape }, k) => shape.length === arrays[k].shape.length
        && shape.every((extent, axis) => evaluated(extent, known) === arrays[k].shape[axis]))
      && assumes.equal.every(([left, right]) => evaluated(left, known) === evaluated(right, known))
      && assumes.positive.every((one) => evaluated(one, known) > 0);
    if (!isRight) {
      const wanted = inputs.map((one) => `${one.name}[${one.shape}]`).join(", ");
      throw new HostError(`${name} takes ${wanted}; shapes of the arguments differ`);
    }
    return known;
  }
}

const programsOf = (commands) =>
  commands.flatMap((one) => (one.program ? [one.program] : programsOf(one.body ?? [])));
const holdsWhile = (commands) =>
  commands.some((one) => one.do === "while" || holdsWhile(one.body ?? []));

/** A plan for fixed arrays; `outputs` are the same buffers in every run. */
class Prepared {
  #build;
  #operations;

  constructor(run, arrays, carries) {
    this.outputs = run.outputs();
    const carried = Object.entries(carries).map(([input, output]) => {
      const [from, to] = [this.outputs[output], arrays[input]];
      if (from.byteCount !== to.byteCount) {
        throw new HostError(`output ${output} has ${from.byteCount} bytes, not ${to.byteCount}`);
      }
      // Copies run one after the other, so none may change the source of another.
      if (arrays.some(({ buffer }) => buffer === from.buffer)) {
        throw new HostError(`output ${output} is an input itself: it cannot be carried`);
      }
      return { copy: [from.buffer, from.offset, to.buffer, to.offset, up(to.byteCount, 4)] };
    });
    this.#build = run.build;
    this.#operations = [...run.operations, ...carried];
  }

  /** The programs that a run dispatches, in order. */
  get files() {
    return this.#operations.map(({ file }) => file).filter(Boolean);
  }

  run() {
    this.#build.submit(this.#operations);
  }
}

/** One run of one plan, with its buffers by number and its sizes by name. */
class Run {
  constructor(build, programs, plan, arrays, sizes, uniforms = {}) {
    this.build = build;
    this.plan = plan;
    this.uniforms = uniforms;
    this.programs = new Map(programs.map((one) => [one.name, one]));
    this.byteCounts = plan.buffers.map((one) => one.byte_count);
    this.known = { ...sizes, $group_limit: GROUPS_PER_ROW };
    this.operations = [];
    this.buffers = arrays.map((one) => one.buffer ?? one);  // Textures and samplers directly.
    arrays.forEach(({ offset }, k) => {
      if (offset) this.buffers[k] = this.#moved(arrays[k]);
      this.known[`$start_${k}`] = 0;
    });
  }

  #moved({ buffer, offset, byteCount }) {
    const moved = this.build.buffer(byteCount);
    this.#copy(buffer, offset, moved, 0, up(byteCount, 4));
    return moved;
  }

  #size(text) {
    return evaluated(text, this.known);
  }

  /** Creates a buffer at its first use, when its size is known. */
  #buffer(number) {
    return this.buffers[number] ??= this.build.buffer(this.#size(this.byteCounts[number]));
  }

  #copy(...copy) {
    this.operations.push({ copy });
  }

  outputs() {
    return this.plan.outputs.map(({ buffer, type, shape }) => {
      const extents = shape.map((one) => this.#size(one));
      const byteCount = product(extents) * this.build.types[type].byte_count;
      return { buffer: this.#buffer(buffer), offset: 0, byteCount, shape: extents };
    });
  }

  submit() {
    this.build.submit(this.operations);
    this.operations = [];
  }

  async do(commands) {
    for (const one of commands) await this[one.do](one);
  }

  run({ program: name, bind, words, groups, if_positive = 1 }) {
    const program = this.programs.get(name);
    const count = this.#size(groups);
    if (count <= 0 || this.#size(if_positive) <= 0) return;
    const bound = Object.fromEntries(
      Object.entries(bind).map(([resource, number]) => [resource, this.#buffer(number)]));
    this.known.$site_base = this.build.siteBase(program);
    const numbers = words.map((one) => this.#word(one));
    this.operations.push(this.build.dispatch(program, bound, numbers, count));
  }

  #word(word) {
    return typeof word === "object" ? this.uniforms[word.uniform][word.index] : this.#size(word) >>> 0;
  }

  copy({ source, target, byte_count, source_offset = 0, target_offset = 0 }) {
    const count = this.#size(byte_count);
    if (!count) return;
    const [start, end] = [source_offset, target_offset].map((one) => this.#size(one));
    this.#copy(this.#buffer(source), start, this.#buffer(target), end, count);
  }

  fill({ target, word, byte_count }) {
    const count = this.#size(byte_count);
    if (!count) return;
    this.#copy(this.build.buffer(count, word), 0, this.#buffer(target), 0, count);
  }

  async repeat({ symbol, count: times, is_reversed, carries, start, body }) {
    const count = this.#size(times);
    if (count % 2) this.#trade(carries);
    for (const one of start) this.copy(one);
    for (let k = 0; k < count; k++) {
      this.known[symbol] = is_reversed ? count - 1 - k : k;
      await this.do(body);
      this.#trade(carries);
    }
  }

  async while({ carries, body, goes_on }) {
    for (let goesOn = 1; goesOn;) {
      for (let k = 0; k < 2; k++) {
        await this.do(body);
        this.#trade(carries);
      }
      this.submit();
      const word = { buffer: this.#buffer(goes_on), offset: 0, byteCount: 4 };
      [goesOn] = new Uint32Array(await this.build.read(word));
    }
  }

  #trade(carries) {
    for (const [left, right] of carries) {
      const found = [this.#buffer(right), this.#buffer(left)];
      [this.buffers[left], this.buffers[right]] = found;
    }
  }
}

/** The value of an expression of docs/plans.md. */
function evaluated(text, known) {
  if (typeof text === "number") return text;
  const tokens = text.match(/\/\/|[-+*(),]|[$_.\p{L}\p{N}]+/gu);
  const sqrt = (number) => Math.max(1, Math.floor(Math.sqrt(number)));
  const functions = { max: Math.max, min: Math.min, sqrt };
  let next = 0;
  const took = (...wanted) => (wanted.includes(tokens[next]) ? tokens[next++] : "");

  function expression() {
    let value = took("-") ? -term() : term();
    for (let sign; (sign = took("+", "-"));) value += sign === "+" ? term() : -term();
    return value;
  }
  function term() {
    let value = factor();
    for (let sign; (sign = took("*", "//"));) {
      value = sign === "*" ? value * factor() : Math.floor(value / factor());
    }
    return value;
  }
  function factor() {
    if (took("(")) return closed([expression()])[0];
    const token = tokens[next++];
    if (token in functions && took("(")) {
      const given = [expression()];
      if (took(",")) given.push(expression());
      return functions[token](...closed(given));
    }
    const value = token in known ? known[token] : Number(token);
    if (!Number.isInteger(value)) throw new HostError(`${token} in ${text} is no known size`);
    return value;
  }
  function closed(values) {
    if (!took(")")) throw new HostError(`${text} is no size`);
    return values;
  }
  return expression();
}
