// Trains a texture, as an engine would: it stays a WebGPU texture, the gradient by its texels is an
// array, and each step is copied back into the texture.

import { HostError, load } from "./shaderad.js";

const OUT = new URLSearchParams(location.search).get("out") ?? "../out";
const SIZE = 64;
const PLACES = 1 << 14;
const STEPS = 60;
const RATE = 0.1;

/** The target picture: rings and stripes; red, green, blue, alpha from 0 to 1. */
function wanted(u, v) {
  const [x, y] = [u - 0.5, v - 0.5];
  const ring = 0.5 + 0.5 * Math.cos(40 * Math.hypot(x, y));
  const stripe = 0.5 + 0.5 * Math.sin(20 * (x + y));
  return [ring, 0.5 * ring + 0.5 * stripe, stripe, 1];
}

/** Random points, and the colours of the picture there. */
function drawn() {
  const [at, target] = [new Float32Array(2 * PLACES), new Float32Array(4 * PLACES)];
  for (let k = 0; k < PLACES; k++) {
    at.set([Math.random(), Math.random()], 2 * k);
    target.set(wanted(at[2 * k], at[2 * k + 1]), 4 * k);
  }
  return { at, target };
}

function draw(canvas, texels) {
  const bytes = Uint8ClampedArray.from(texels, (one) => 255 * one);
  document.querySelector(canvas).getContext("2d").putImageData(new ImageData(bytes, SIZE), 0, 0);
}

async function train() {
  const build = await load(`${OUT}/texture`);
  const [difference, descended] = await Promise.all(
    ["squared_difference", "descended"].map((name) => build.kernel(name)));
  const grey = new Float32Array(4 * SIZE * SIZE).fill(0.5);
  const picture = build.texture([grey], { size: [SIZE, SIZE] });
  const smooth = build.sampler({ wrap: "clamp" });
  const one = build.array(Float32Array.of(1), "float");
  const how = { dim: [PLACES], shapes: { total: [1] } };
  const uniforms = { rate: Float32Array.of(RATE) };
  let texels = build.array(grey, "float4");
  const losses = [];
  for (let step = 0; step <= STEPS; step++) {
    const { at, target } = drawn();
    const inputs = { picture, smooth, at: build.array(at, "float2"),
                     target: build.array(target, "float4") };
    const { total } = await difference.primal(inputs, how);
    losses.push(new Float32Array(await build.read(total))[0] / PLACES);
    const { picture: gradient } = await difference.backward(inputs, { total: one }, how);
    ({ result: texels } = await descended.primal(
      { texels, gradient }, { dim: texels.shape, uniforms }));
    build.copyToTexture(texels, picture);
    if (step % 10 === 0) draw("#found", new Float32Array(await build.read(texels)));
  }
  return losses;
}

async function report() {
  const centres = Array.from({ length: SIZE * SIZE }, (_, k) => (
    wanted((k % SIZE + 0.5) / SIZE, (Math.floor(k / SIZE) + 0.5) / SIZE)));
  draw("#wanted", centres.flat());
  try {
    const losses = await train();
    const shown = [0, STEPS / 2, STEPS].map((step) => (
      `step ${String(step).padStart(3)}   mean squared difference ${losses[step].toExponential(2)}`));
    return shown.join("\n");
  } catch (failure) {
    return `FAIL\n${failure instanceof HostError ? failure.message : failure.stack}`;
  }
}

document.querySelector("pre").textContent = await report();
