// The graphs of a step, built for WGSL, and the arrays of a scene -> a fit like that of fit.py.
//
// A step is one submission. The state between steps stays on the device in the same buffers, so
// pictures of the fit are prepared once and always show its current state.

import { orbit } from "./scene.js";

const CAMERA = "Camera";
const VECTOR = "float3";
// The outputs of every step: the loss, its gradient, the fitted array, then the optimiser's state.
const [LOSS, GRADIENT, FITTED] = [0, 1, 2];
const isState = (name) => name.startsWith("state.");

export class Fit {
  /** Finished steps. */
  steps = 0;
  /** The learning rate, which may be set between steps. */
  lr;
  #scene;
  /** The constants, by their names in the graphs. */
  #arrays;
  #plan;
  #start;
  #fitted;
  #state = {};
  #numbers = {};
  #step;
  #eye;
  #canvas;
  #pictures = {};

  /**
   * @param {object} scene The result of `sceneOf`.
   * @param {string} attribute One of the names in `scene.fits`.
   * @param {number} size Pixels along an edge of each target.
   * @param {number} shownSize Pixels along an edge of the displayed pictures.
   */
  static async of(scene, attribute, size, shownSize) {
    const fit = new Fit();
    await fit.#make(scene, scene.fits[attribute], size, shownSize);
    return fit;
  }

  async #make(scene, plan, size, shownSize) {
    this.#scene = scene;
    this.#plan = plan;
    this.#arrays = scene.arrays[plan.model];
    this.#start = this.#arrays[plan.start];
    this.#fitted = this.#zeros(VECTOR, this.#start.shape);
    this.#eye = scene.array(orbit(scene.camera), CAMERA, []);
    this.#canvas = this.#zeros(VECTOR, [shownSize, shownSize]);
    this.lr = plan.schedule.lr[0];
    for (const name of Object.keys(plan.schedule)) this.#numbers[name] = this.#zeros("float", []);
    const camera = scene.array(orbit(scene.camera), CAMERA, []);
    const given = { ...this.#arrays, ...this.#numbers, camera };
    given.like = this.#zeros(VECTOR, [size, size]);
    for (const [graph, names] of plan.first) {
      const found = await this.#run(graph, given);
      names.forEach((name, k) => (given[name] = found[k]));
    }
    await this.#makeStep(given);
    this.reset();
  }

  /** Prepares the step, which carries the fitted array and the optimiser's state to the next. */
  async #makeStep(given) {
    const { graph, fitted } = this.#plan;
    const { inputs } = this.#scene.graph(graph).entry;
    for (const { name, type, shape } of inputs.filter((one) => isState(one.name))) {
      this.#state[name] = this.#zeros(type, shape.length ? this.#start.shape : []);
    }
    const names = inputs.map((one) => one.name);
    const carried = [fitted, ...names.filter(isState)];
    const carries = carried.map((input, k) => [names.indexOf(input), FITTED + k]);
    const arrays = { ...given, [fitted]: this.#fitted, ...this.#state };
    this.#step = await this.#prepared(graph, arrays, Object.fromEntries(carries));
  }

  /** The WGSL of the dispatches of a step, in order. */
  get files() {
    const { folder } = this.#scene.graph(this.#plan.graph).build;
    return this.#step.files.map((file) => `${folder}/${file}`);
  }

  /** The mean of squared differences before the last step: reads four bytes. */
  async loss() {
    return new Float32Array(await this.#scene.read(this.#step.outputs[LOSS]))[0];
  }

  step() {
    const { schedule, scheduled } = this.#plan;
    const done = Math.min(1, this.steps / scheduled);
    for (const [name, [first, last]] of Object.entries(schedule)) {
      const start = name === "lr" ? this.lr : first;
      this.#write(this.#numbers[name], Float32Array.of(start * (last / first) ** done));
    }
    this.#step.run();
    this.steps += 1;
  }

  /** Returns to the state before the first step. */
  reset() {
    const { device } = this.#scene;
    const encoder = device.createCommandEncoder();
    const { buffer, byteCount } = this.#fitted;
    encoder.copyBufferToBuffer(this.#start.buffer, 0, buffer, 0, byteCount);
    const zeros = [...Object.values(this.#state), ...this.#step.outputs];
    for (const one of zeros) encoder.clearBuffer(one.buffer);
    device.queue.submit([encoder.finish()]);
    this.steps = 0;
  }

  /** From where `picture` looks: what differs from the scene's camera. */
  lookFrom(view) {
    this.#write(this.#eye, orbit({ ...this.#scene.camera, ...view }));
  }

  /**
   * A picture of the current state, of shape `[shownSize, shownSize]`.
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

  /** The attribute of the mesh in a view, if it is not the true one. */
  #look(show) {
    const arrays = { fit: this.#fitted, start: this.#start };
    return show in arrays ? { [this.#plan.fitted]: arrays[show] } : {};
  }

  #seen(look) {
    const view = { camera: this.#eye, like: this.#canvas };
    return this.#prepared("picture", { ...this.#arrays, ...view, ...look });
  }

  // -- graphs and arrays --------------------------------------------------------------------------

  #run(name, arrays) {
    const graph = this.#scene.graph(name);
    return graph.run("primal", graph.entry.inputs.map((one) => arrays[one.name]));
  }

  #prepared(name, arrays, carries) {
    const graph = this.#scene.graph(name);
    const inOrder = graph.entry.inputs.map((one) => arrays[one.name]);
    return graph.prepared("primal", inOrder, carries);
  }

  #zeros(type, shape) {
    return this.#scene.array(undefined, type, shape);
  }

  #write({ buffer }, words) {
    this.#scene.device.queue.writeBuffer(buffer, 0, words);
  }
}
