// A program of a user, type-checked and run by Node: it has no GPU, and gives a device of its own.
import { type Build, type DeviceArray, HostError, load } from "shaderad";

const [folder] = process.argv.slice(2);

function buffer(size: number): GPUBuffer {
  const bytes = new ArrayBuffer(size);
  const made = { size, getMappedRange: () => bytes, unmap() {}, destroy() {}, async mapAsync() {} };
  return made as unknown as GPUBuffer;
}

const written: number[] = [];
const recorded = {
  beginComputePass: () => ({ setPipeline() {}, setBindGroup() {}, dispatchWorkgroups() {}, end() {} }),
  copyBufferToBuffer() {},
  finish: () => ({}),
};
const device = {
  addEventListener() {},
  createBuffer: ({ size }: GPUBufferDescriptor) => buffer(size),
  createBindGroup: () => ({}),
  createBindGroupLayout: () => ({}),
  createCommandEncoder: () => recorded,
  createComputePipelineAsync: async () => ({ getBindGroupLayout: () => ({}) }),
  createPipelineLayout: () => ({}),
  createShaderModule: () => ({}),
  queue: {
    submit() {},
    writeBuffer: (_: GPUBuffer, __: number, bytes: Uint8Array) => written.push(bytes.byteLength),
  },
} as unknown as GPUDevice;
const stages = { COMPUTE: 4 };
const usages = { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, UNIFORM: 64, STORAGE: 128 };
const constants = { GPUBufferUsage: usages, GPUMapMode: { READ: 1 }, GPUShaderStage: stages };
Object.assign(globalThis, constants);

async function refusal(call: () => Promise<unknown>): Promise<string> {
  try {
    await call();
  } catch (failure) {
    if (failure instanceof HostError) return failure.message;
  }
  throw new Error("the loader took it");
}

const build: Build = await load(folder, device);
const x: DeviceArray = build.array(Float32Array.of(1, 2, 3), "float");
const how = { dim: x.shape };
const kernel = await build.kernel("square");
const { y } = await kernel.primal({ x }, how);
const gradients = await kernel.backward({ x }, { y }, { ...how, results: { y } });
const graph = build.graph("loss");
const [value] = await graph.run("primal", [x]);
const prepared = await graph.prepared("primal", [x], {});
prepared.run();
const bytes: ArrayBuffer = await build.read(gradients.x);
console.log(JSON.stringify({
  members: Object.keys(build.types).length > 0 && build.device === device,
  shapes: [y.shape, gradients.x.shape, value.shape, prepared.outputs[0].shape],
  bytes: [bytes.byteLength, written[0], build.buffer(4, 1).size, build.types.float.byte_count],
  files: prepared.files.length > 0,
  refusals: [
    await refusal(() => load(folder)),
    await refusal(() => load(`${folder}/nowhere`, device)),
    await refusal(() => build.kernel("cube")),
  ],
}));
