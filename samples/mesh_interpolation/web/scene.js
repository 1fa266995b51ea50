// The files of prepare.py -> builds and arrays on one device.

import { HostError, load } from "./shaderad.js";

export async function sceneOf(folder) {
  const response = await fetch(`${folder}/scene.json`).catch(() => undefined);
  if (!response?.ok) throw new HostError(`cannot read ${folder}/scene.json; run prepare.py`);
  const { builds, arrays, ...told } = await response.json();
  const scene = new Scene(told);
  for (const name of builds) await scene.load(`${folder}/${name}`);
  await Promise.all(Object.entries(arrays).map(async ([path, { type, shape }]) => {
    const data = await fetch(`${folder}/${path}.bin`);
    if (!data.ok) throw new HostError(`cannot read ${folder}/${path}.bin; run prepare.py`);
    const [model, name] = path.split("/");
    (scene.arrays[model] ??= {})[name] = scene.array(await data.arrayBuffer(), type, shape);
  }));
  return scene;
}

class Scene {
  /** Arrays by model, then by their names in graphs. */
  arrays = {};
  #builds = [];

  /** @param {object} told The camera, and the available fits. */
  constructor({ camera, fits }) {
    this.camera = camera;
    this.fits = fits;
  }

  async load(folder) {
    this.#builds.push(await load(folder, this.#builds[0]?.device));
  }

  get device() {
    return this.#builds[0].device;
  }

  /** A graph of any of the builds. */
  graph(name) {
    const holds = ({ manifest }) => manifest.entries.some((entry) => entry.name === name);
    return this.#builds.find(holds).graph(name);
  }

  /** Elements on the device; zeros without data. */
  array(data, type, shape) {
    const build = this.#builds.find(({ types }) => type in types);
    const count = shape.reduce((left, right) => left * right, 1);
    return build.array(data ?? new Uint8Array(count * build.types[type].byte_count), type, shape);
  }

  /** The bytes of an array, and what threads of any build reported. */
  async read(array) {
    const [bytes] = await Promise.all(this.#builds.map((build) => build.read(array)));
    return bytes;
  }
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
