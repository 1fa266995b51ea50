// The graphs of steps.py, built for WGSL, at the arrays of a scene -> a fit, as fit.py is in Python.
//
// A step is one submission. What it leaves to the next stays on the device, in the same buffers:
// pictures of the fit are prepared once and always show how far it is.

import { HostError, load } from "./shaderad.js";

const CAMERA = "Camera";
const VECTOR = "float3";
// Of every step: the loss, its gradient, what is fitted, and then the optimiser's state.
const [LOSS, GRADIENT, FITTED] = [0, 1, 2];
const isState = (name) => name.startsWith("state.");

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
  #build;
  /** Of the scene, by the names that graphs give them. */
  #arrays;
  #graphs = {};
  #camera;
  #attribute;
  #start;
  #fitted;
  #state = {};
  #lr;
  #step;
  #eye;
  #canvas;
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

  async #make({ build, camera, arrays }, { graph, fitted, start, lr }, size, shownSize) {
    this.#build = build;
    this.#camera = camera;
    this.#arrays = arrays;
    this.#attribute = fitted;
    this.#start = arrays[start];
    this.#fitted = this.#zeros(VECTOR, this.#start.shape);
    this.#lr = build.array(Float32Array.of(lr), "float", []);
    this.#eye = build.array(orbit(camera), CAMERA, []);
    this.#canvas = this.#zeros(VECTOR, [shownSize, shownSize]);
    const view = { camera: build.array(orbit(camera), CAMERA, []) };
    const given = { ...arrays, ...view, like: this.#zeros(VECTOR, [size, size]), lr: this.#lr };
    const [hits] = await this.#run("hits_of", given);
    const [target] = await this.#run("picture", given);
    await this.#makeStep(graph, { ...given, hits, target });
    this.reset();
  }

  /** Prepares the step, which carries what is fitted and the optimiser's state to the next. */
  async #makeStep(name, given) {
    const { inputs } = this.#graph(name).entry;
    for (const { name: input, type, shape } of inputs.filter((one) => isState(one.name))) {
      this.#state[input] = this.#zeros(type, shape.length ? this.#start.shape : []);
    }
    const names = inputs.map((one) => one.name);
    const carried = [this.#attribute, ...names.filter(isState)];
    const carries = carried.map((input, k) => [names.indexOf(input), FITTED + k]);
    const arrays = { ...given, [this.#attribute]: this.#fitted, ...this.#state };
    this.#step = await this.#prepared(name, arrays, Object.fromEntries(carries));
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
    const { buffer, byteCount } = this.#fitted;
    encoder.copyBufferToBuffer(this.#start.buffer, 0, buffer, 0, byteCount);
    const zeros = [...Object.values(this.#state), ...this.#step.outputs];
    for (const one of zeros) encoder.clearBuffer(one.buffer);
    this.#build.device.queue.submit([encoder.finish()]);
    this.steps = 0;
  }

  set lr(value) {
    this.#write(this.#lr, Float32Array.of(value));
  }

  /** From where `picture` looks: what differs from the scene's camera. */
  lookFrom(view) {
    this.#write(this.#eye, orbit({ ...this.#camera, ...view }));
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
      const heat = await this.#prepared("heated", { gradient: this.#step.outputs[GRADIENT] });
      // By the true light, which shows the shape.
      const { normals } = this.#arrays;
      const picture = await this.#seen({ ...this.#look("fit"), normals, colors: heat.outputs[0] });
      return { runs: [heat, picture], outputs: picture.outputs };
    }
    const picture = await this.#seen(this.#look(show));
    return { runs: [picture], outputs: picture.outputs };
  }

  /** What the mesh carries in a view, where that is not what it should. */
  #look(show) {
    const arrays = { fit: this.#fitted, start: this.#start };
    return show in arrays ? { [this.#attribute]: arrays[show] } : {};
  }

  #seen(look) {
    const view = { camera: this.#eye, like: this.#canvas };
    return this.#prepared("picture", { ...this.#arrays, ...view, ...look });
  }

  // -- graphs and arrays --------------------------------------------------------------------------

  #run(name, arrays) {
    const graph = this.#graph(name);
    return graph.run("primal", graph.entry.inputs.map((one) => arrays[one.name]));
  }

  #prepared(name, arrays, carries) {
    const graph = this.#graph(name);
    const inOrder = graph.entry.inputs.map((one) => arrays[one.name]);
    return graph.prepared("primal", inOrder, carries);
  }

  #graph(name) {
    return (this.#graphs[name] ??= this.#build.graph(name));
  }

  #zeros(type, shape) {
    const count = shape.reduce((left, right) => left * right, 1);
    const bytes = new Uint8Array(count * this.#build.types[type].byte_count);
    return this.#build.array(bytes, type, shape);
  }

  #write({ buffer }, words) {
    this.#build.device.queue.writeBuffer(buffer, 0, words);
  }
}
