// The graphs of steps.py, built for WGSL, at the arrays of a scene -> a fit, as fit.py is in Python.
//
// A step is one submission. What it leaves to the next stays on the device, in the same buffers:
// pictures of the fit are prepared once and always show how far it is.

import { HostError, load } from "./shaderad.js";

const CAMERA = "Camera";
const VECTOR = "float3";
// Of every step: the loss, its gradient, what is fitted, and then the optimiser's state.
const [LOSS, GRADIENT, FITTED] = [0, 1, 2];

/** What prepare.py wrote, on the device. */
export async function sceneOf(folder) {
  const response = await fetch(`${folder}/scene.json`).catch(() => undefined);
  if (!response?.ok) throw new HostError(`cannot read ${folder}/scene.json; run prepare.py`);
  const { camera, fits, arrays: types } = await response.json();
  const build = await load(`${folder}/build`);
  const arrays = {};
  await Promise.all(Object.entries(types).map(async ([name, type]) => {
    const data = await fetch(`${folder}/${name}.bin`);
    if (!data.ok) throw new HostError(`cannot read ${name}.bin; run prepare.py`);
    arrays[name] = build.array(await data.arrayBuffer(), type);
  }));
  return { build, camera, fits, arrays };
}

/** The numbers of a camera that looks at the model: `orbit` of scene.py. */
export function orbit({ aim, focal, turn, lift, distance }) {
  const level = Math.cos(lift);
  const back = [Math.sin(turn) * level, Math.sin(lift), -Math.cos(turn) * level];
  const right = [-Math.cos(turn), 0, -Math.sin(turn)];
  const up = [-Math.sin(lift) * Math.sin(turn), level, Math.sin(lift) * Math.cos(turn)];
  const eye = aim.map((one, k) => one + distance * back[k]);
  return Float32Array.of(...eye, ...right, ...up, ...back.map((one) => -one), focal);
}

export class Fit {
  /** Finished steps. */
  steps = 0;
  #scene;
  #build;
  #graphs = {};
  #start;
  #fitted;
  #lr;
  #state = [];
  #step;
  #lookCamera;
  #like;
  #pictures = {};

  /**
   * @param {object} scene What `sceneOf` found.
   * @param {string} attribute One of the names in `scene.fits`.
   * @param {number} size Pixels along an edge of the target.
   * @param {number} shownSize Pixels along an edge of the pictures that are looked at.
   */
  static async of(scene, attribute, size, shownSize) {
    const fit = new Fit();
    await fit.#make(scene, scene.fits[attribute], size, shownSize);
    return fit;
  }

  async #make(scene, { graph, fitted, start, lr }, size, shownSize) {
    this.#scene = scene;
    this.#build = scene.build;
    this.#start = scene.arrays[start];
    this.#fitted = { name: fitted, array: this.#copyOf(this.#start) };
    this.#lr = this.#scalar(lr);
    const camera = this.#array(orbit(scene.camera), CAMERA, []);
    const given = { ...scene.arrays, camera, like: this.#blank(size), lr: this.#lr };
    const [hits] = await this.#run("hits_of", given);
    const [target] = await this.#run("picture", given);
    await this.#makeStep(graph, { ...given, hits, target });
    this.#lookCamera = this.#array(orbit(scene.camera), CAMERA, []);
    this.#like = this.#blank(shownSize);
  }

  async #makeStep(name, given) {
    const graph = await this.#graph(name);
    const named = { ...given, [this.#fitted.name]: this.#fitted.array };
    const { inputs } = graph.entry;
    for (const { name: input, type, shape } of inputs.filter((one) => !(one.name in named))) {
      const extents = shape.length ? this.#start.shape : [];
      const count = extents.reduce((left, right) => left * right, 1);
      const zeros = new Uint8Array(count * this.#build.types[type].byte_count);
      this.#state.push(named[input] = this.#array(zeros, type, extents));
    }
    const names = inputs.map((one) => one.name);
    const carries = { [names.indexOf(this.#fitted.name)]: FITTED };
    const state = names.filter((one) => this.#state.includes(named[one]));
    state.forEach((one, k) => (carries[names.indexOf(one)] = FITTED + 1 + k));
    this.#step = await this.#prepared(name, named, carries);
  }

  /** The WGSL of the dispatches of a step, in order. */
  get files() {
    return this.#step.files;
  }

  /** The mean of squared differences before the last step: reads four bytes. */
  async loss() {
    return new Float32Array(await this.#build.read(this.#step.outputs[LOSS]))[0];
  }

  step() {
    this.#step.run();
    this.steps += 1;
  }

  /** Back to before the first step. */
  reset() {
    const encoder = this.#build.device.createCommandEncoder();
    const { buffer, byteCount } = this.#fitted.array;
    encoder.copyBufferToBuffer(this.#start.buffer, 0, buffer, 0, byteCount);
    for (const one of [...this.#state, ...this.#step.outputs]) encoder.clearBuffer(one.buffer);
    this.#build.device.queue.submit([encoder.finish()]);
    this.steps = 0;
  }

  set lr(value) {
    this.#write(this.#lr, Float32Array.of(value));
  }

  /** From where `picture` looks: what differs from the scene's camera. */
  look(view) {
    this.#write(this.#lookCamera, orbit({ ...this.#scene.camera, ...view }));
  }

  /**
   * A picture as it is now, of shape `[shownSize, shownSize]`.
   * @param {string} show "fit", "start", "target", "difference", or "gradient" of the last step.
   */
  async picture(show) {
    const { runs, outputs } = await (this.#pictures[show] ??= this.#view(show));
    for (const one of runs) one.run();
    return outputs[0];
  }

  async #view(show) {
    if (show === "difference") {
      const [fit, target] = await Promise.all([this.#view("fit"), this.#view("target")]);
      const [[found], [wanted]] = [fit.outputs, target.outputs];
      const apart = await this.#prepared("difference", { found, wanted });
      return { runs: [...fit.runs, ...target.runs, apart], outputs: apart.outputs };
    }
    if (show === "gradient") {
      const gradient = this.#step.outputs[GRADIENT];
      const heat = await this.#prepared("heated", { gradient });
      // By the true light, which shows the shape.
      const { normals } = this.#scene.arrays;
      const look = { ...this.#attribute("fit"), normals, colors: heat.outputs[0] };
      const picture = await this.#seen(look);
      return { runs: [heat, picture], outputs: picture.outputs };
    }
    const picture = await this.#seen(this.#attribute(show));
    return { runs: [picture], outputs: picture.outputs };
  }

  /** What the mesh carries in a view, where that is not what it should. */
  #attribute(show) {
    const { name, array } = this.#fitted;
    return { fit: { [name]: array }, start: { [name]: this.#start }, target: {} }[show];
  }

  #seen(look) {
    const given = { ...this.#scene.arrays, camera: this.#lookCamera, like: this.#like };
    return this.#prepared("picture", { ...given, ...look });
  }

  // -- graphs and arrays --------------------------------------------------------------------------

  async #run(name, named) {
    const graph = await this.#graph(name);
    return graph.run("primal", graph.entry.inputs.map((one) => named[one.name]));
  }

  async #prepared(name, named, carries) {
    const graph = await this.#graph(name);
    const arrays = graph.entry.inputs.map((one) => named[one.name]);
    return graph.prepared("primal", arrays, carries);
  }

  #graph(name) {
    return (this.#graphs[name] ??= this.#build.graph(name));
  }

  #array(data, type, shape) {
    return this.#build.array(data, type, shape);
  }

  #scalar(value) {
    return this.#array(Float32Array.of(value), "float", []);
  }

  #blank(size) {
    return this.#array(new Float32Array(3 * size * size), VECTOR, [size, size]);
  }

  #copyOf({ buffer, byteCount, shape }) {
    const copy = this.#array(new Uint8Array(byteCount), VECTOR, shape);
    this.#build.submit([{ copy: [buffer, 0, copy.buffer, 0, byteCount] }]);
    return copy;
  }

  #write({ buffer }, words) {
    this.#build.device.queue.writeBuffer(buffer, 0, words);
  }
}
