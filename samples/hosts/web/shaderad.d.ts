// Types of shaderad.js. Those of WebGPU come with TypeScript 6 or newer, or from @webgpu/types.

/** An error in the folder, the device or an argument, described in one sentence. */
export class HostError extends Error {}

/** Packed elements in a buffer; `shape` counts elements: a float3 is one. */
export interface DeviceArray {
  buffer: GPUBuffer;
  offset: number;
  byteCount: number;
  shape: number[];
}

/** A texture for kernels; as an array it has one axis, the texels of all levels. */
export interface DeviceTexture {
  texture: GPUTexture;
  dimension: TextureDimension;
  shape: number[];
  /** Texels along x, y and z on a level; z counts layers and the faces of a cube. */
  extents(level: number): [number, number, number];
}

export type TextureDimension = "1d" | "2d" | "2d-array" | "3d" | "cube";

/** A sampler for kernels. */
export interface DeviceSampler {
  sampler: GPUSampler;
  settings: Uint32Array;
}

/** An input of a kernel, of the kind of its parameter. */
export type Input = DeviceArray | DeviceTexture | DeviceSampler;

/** The options of a call of a kernel. */
export interface Launch {
  /** The number of threads along each axis. */
  dim: number[];
  /** Values by name, as typed arrays of 32-bit words. */
  uniforms?: Record<string, ArrayBufferView>;
  /** The shapes of written arrays that differ from `dim`. */
  shapes?: Record<string, number[]>;
}

export interface BackwardLaunch extends Launch {
  /** The results of `primal`, for kernels with a minimum or maximum. */
  results?: Record<string, DeviceArray>;
}

export interface Kernel {
  /** The arrays that the kernel writes, by name; inputs are `mesh_colors` for `mesh.colors`. */
  primal(inputs: Record<string, Input>, how: Launch): Promise<Record<string, DeviceArray>>;
  /** The gradient by each input, given that by each output; zeros if one is missing. */
  backward(
    inputs: Record<string, Input>,
    cotangents: Record<string, DeviceArray>,
    how: BackwardLaunch,
  ): Promise<Record<string, DeviceArray>>;
}

/** The plan: `backward` takes the inputs, then a cotangent for each output that holds floats. */
export type Mode = "primal" | "backward" | "forward";

export interface Graph {
  /** Arrays are given and returned in the order of the plan's inputs and outputs. */
  run(mode: Mode, arrays: DeviceArray[]): Promise<DeviceArray[]>;
  /** Prepares the same for many runs; `carries[k]` is the output that becomes input `k`. */
  prepared(
    mode: Mode,
    arrays: DeviceArray[],
    carries?: Record<number, number>,
  ): Promise<Prepared>;
}

/** A plan for fixed arrays; `outputs` are the same buffers in every run. */
export interface Prepared {
  readonly outputs: DeviceArray[];
  /** The programs that a run dispatches, in order. */
  readonly files: string[];
  run(): void;
}

/** The layout of a type of the manifest. */
export interface ElementType {
  readonly byte_count: number;
}

export interface Build {
  readonly folder: string;
  /** manifest.json; docs/manifest.md describes it. */
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly types: Readonly<Record<string, ElementType>>;
  readonly device: GPUDevice;
  /** A kernel, ready to be called. */
  kernel(name: string): Promise<Kernel>;
  /** A graph; the programs of a mode are compiled at its first run. */
  graph(name: string): Graph;
  /** Copies the bytes of packed elements of a type to the device. */
  array(data: ArrayBuffer | ArrayBufferView, element: string, shape?: number[]): DeviceArray;
  /** Makes a texture of the bytes of its levels, row after row. */
  texture(
    levels: ArrayBufferView[],
    how: { size: number[]; format?: GPUTextureFormat; dimension?: TextureDimension },
  ): DeviceTexture;
  /** A texture of yours, for kernels. */
  textureOf(texture: GPUTexture, dimension?: TextureDimension): DeviceTexture;
  /** Copies packed texels on the device to a level, for formats with 32 bits per channel. */
  copyToTexture(array: DeviceArray, texture: DeviceTexture, mipLevel?: number): void;
  sampler(how?: {
    filter?: "linear" | "nearest";
    wrap?: "repeat" | "clamp" | "mirror";
    mipFilter?: "linear" | "nearest";
  }): DeviceSampler;
  /** The bytes of an array; throws the first report of threads since the last read. */
  read(array: DeviceArray): Promise<ArrayBuffer>;
  /** A buffer that repeats one 32-bit word. */
  buffer(byteCount: number, word?: number): GPUBuffer;
}

/**
 * Opens a build.
 * @param folder The URL of the folder of manifest.json.
 * @param device Your own device, with the features that the build needs.
 */
export function load(folder: string, device?: GPUDevice): Promise<Build>;
