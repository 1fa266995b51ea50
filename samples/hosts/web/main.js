// Runs the gradients of a mesh, a graph and a texture, and compares them with those of Python.

import { HostError, load } from "./shaderad.js";

// Relative to the largest number: float32, hundreds of terms added in any order.
const TOLERANCE = 1e-5;
// For texture units of GPUs, which filter with weights of eight bits.
const UNIT_TOLERANCE = 4e-3;
// The output of `prepare.py`; the page is served from the folder above, which holds both.
const OUT = new URLSearchParams(location.search).get("out") ?? "../out";

async function data(path) {
  const response = await fetch(`${OUT}/${path}.bin`);
  if (!response.ok) throw new HostError(`cannot read ${path}.bin; run prepare.py`);
  return response.arrayBuffer();
}

/** The largest error of an array, relative to the largest number that was expected. */
async function errorOf(build, path, array) {
  const found = new Float32Array(await build.read(array));
  const wanted = new Float32Array(await data(path));
  const largest = Math.max(...wanted.map(Math.abs));
  if (found.length !== wanted.length) return Infinity;
  // Math.max keeps a NaN, so that one wrong number is enough.
  return Math.max(...found.map((one, k) => Math.abs(one - wanted[k]))) / largest;
}

async function mesh() {
  const build = await load(`${OUT}/mesh`);
  const kernel = await build.kernel("squared_error");
  const given = async (name, type) => build.array(await data(`mesh_data/${name}`), type);
  const inputs = {
    mesh_corners: await given("mesh_corners", "int3"),
    mesh_colors: await given("mesh_colors", "float3"),
    samples: await given("samples", "Sample"),
    target: await given("target", "float3"),
  };
  const how = { dim: inputs.samples.shape, shapes: { total: [1] } };
  const { total } = await kernel.primal(inputs, how);
  const one = build.array(Float32Array.of(1), "float");
  const gradients = await kernel.backward(inputs, { total: one }, how);
  return errors(build, "mesh_data", { total, ...gradients });
}

async function scan() {
  const build = await load(`${OUT}/scan`);
  const graph = build.graph("scan_product");
  const x = build.array(await data("scan_data/x"), "float");
  const one = build.array(Float32Array.of(1), "float", []);
  const [value, gradient] = await graph.run("backward", [x, one]);
  return errors(build, "scan_data", { value, x: gradient });
}

async function texture() {
  const build = await load(`${OUT}/texture`);
  const kernel = await build.kernel("squared_difference");
  const given = async (name, type) => build.array(await data(`texture_data/${name}`), type);
  const levels = await Promise.all(
    ["picture", "picture_mip"].map(async (name) => (
      new Float32Array(await data(`texture_data/${name}`)))));
  const inputs = {
    picture: build.texture(levels, { size: [24, 16] }),
    smooth: build.sampler(),
    at: await given("at", "float2"),
    target: await given("target", "float4"),
  };
  const how = { dim: inputs.at.shape, shapes: { total: [1] } };
  const { total } = await kernel.primal(inputs, how);
  const one = build.array(Float32Array.of(1), "float");
  const gradients = await kernel.backward(inputs, { total: one }, how);
  const [[name, error], ...others] = await errors(build, "texture_data", { total, ...gradients });
  return [[name, error * TOLERANCE / UNIT_TOLERANCE], ...others];
}

async function errors(build, folder, arrays) {
  const found = [];
  for (const [name, array] of Object.entries(arrays)) {
    found.push([`${folder}/${name}`, await errorOf(build, `${folder}/expected_${name}`, array)]);
  }
  return found;
}

async function report() {
  try {
    const found = [...await mesh(), ...await scan(), ...await texture()];
    const isRight = found.every(([, error]) => error <= TOLERANCE);
    const lines = found.map(([name, error]) => `${name.padEnd(24)}${error.toExponential(1)}`);
    return [isRight ? "PASS" : "FAIL", ...lines].join("\n");
  } catch (failure) {
    return `FAIL\n${failure instanceof HostError ? failure.message : failure.stack}`;
  }
}

document.querySelector("pre").textContent = await report();
