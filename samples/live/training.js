// The files of live.py -> steps of a fit, and pictures of its state.
//
// A step is the plan of the graph `step` in one submission. Its inputs are the constants, then the
// carry; its outputs are the loss, then the new carry. All of that stays on the device.

import { HostError, load } from "./shaderad.js";

const LOSS = 0;

export class Training {
  /** Finished steps. */
  steps = 0;
  #build;
  #inputs;
  #arrays = {};
  #starts = {};
  #step;
  #views = {};

  /** @param {string} folder The URL of the folder of page.json. */
  static async of(folder) {
    const response = await fetch(`${folder}/page.json`).catch(() => undefined);
    if (!response?.ok) throw new HostError(`cannot read ${folder}/page.json; run main.py --web`);
    const training = new Training();
    await training.#open(folder, await response.json());
    return training;
  }

  async #open(folder, told) {
    /** The title, the text, and the graph of each view by name. */
    this.told = told;
    this.#build = await load(`${folder}/build`);
    const graph = this.#build.graph("step");
    this.#inputs = graph.entry.inputs;
    await Promise.all(told.arrays.map(async (name) => {
      const data = await fetch(`${folder}/${name}.bin`);
      if (!data.ok) throw new HostError(`cannot read ${folder}/${name}.bin; run main.py --web`);
      this.#starts[name] = new Uint8Array(await data.arrayBuffer());
    }));
    for (const input of this.#inputs) this.#arrays[input.name] = this.#array(input);
    const stays = this.#inputs.length - (graph.entry.outputs.length - 1);
    this.#carried = this.#inputs.slice(stays);
    const carries = this.#carried.map((_, k) => [stays + k, LOSS + 1 + k]);
    this.#step = await this.#prepared("step", Object.fromEntries(carries));
  }

  #carried;

  /** An input of the step, from a file of live.py, or zeros. */
  #array({ name, type, shape }) {
    const extents = shape.map((extent) => this.told.sizes[extent] ?? extent);
    const count = extents.reduce((left, right) => left * right, 1);
    const zeros = () => new Uint8Array(count * this.#build.types[type].byte_count);
    return this.#build.array((this.#starts[name] ??= zeros()), type, extents);
  }

  #prepared(name, carries) {
    const graph = this.#build.graph(name);
    const arrays = graph.entry.inputs.map((input) => this.#arrays[input.name]);
    return graph.prepared("primal", arrays, carries);
  }

  get device() {
    return this.#build.device;
  }

  /** The WGSL of the dispatches of a step, in order. */
  get files() {
    return this.#step.files.map((file) => `${this.#build.folder}/${file}`);
  }

  step() {
    this.#step.run();
    this.steps += 1;
  }

  /** The loss before the last step: reads four bytes. */
  async loss() {
    return new Float32Array(await this.read(this.#step.outputs[LOSS]))[0];
  }

  /** The bytes of an array. */
  read(array) {
    return this.#build.read(array);
  }

  /** Returns to the state before the first step. */
  reset() {
    for (const { name } of this.#carried) {
      this.device.queue.writeBuffer(this.#arrays[name].buffer, 0, this.#starts[name]);
    }
    this.steps = 0;
  }

  /**
   * The picture of a view in the current state of the fit: `float3` of shape `[size, size]`, or of
   * shape `[count, size, size]` for a film.
   */
  async view(name) {
    const graph = this.told.views[name];
    const made = await (this.#views[graph] ??= this.#prepared(graph));
    made.run();
    return made.outputs[0];
  }
}
