// A picture on the device, `float3`, in linear light or in sRGB -> a canvas, in sRGB.
//
// Nothing comes back to the host: a fragment shader reads the storage buffer that a graph wrote.
// If the device is a processor, pixels are copied to a 2D canvas instead, because a browser may
// then lose the device over a WebGPU canvas.

const FORMAT = "rgba8unorm";
const ROW_BYTES = 256;  // Rows of a texture begin at multiples of this in a buffer.
const SHADER = /* wgsl */ `
override size: u32;     // Pixels along an edge of the picture.
override samples: u32;  // Pixels of the picture along an edge of a canvas pixel.
override is_linear: bool;

@group(0) @binding(0) var<storage, read> picture: array<f32>;

@vertex
fn corner(@builtin(vertex_index) k: u32) -> @builtin(position) vec4f {
  return vec4f(f32(k & 1u) * 4.0 - 1.0, f32(k >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

fn encoded(linear: vec3f) -> vec3f {
  let curved = 1.055 * pow(linear, vec3f(1.0 / 2.4)) - 0.055;
  return select(curved, 12.92 * linear, linear <= vec3f(0.0031308));
}

@fragment
fn pixel(@builtin(position) place: vec4f) -> @location(0) vec4f {
  let first = vec2u(place.xy) * samples;
  var sum = vec3f(0.0);
  for (var y = first.y; y < first.y + samples; y++) {
    for (var x = first.x; x < first.x + samples; x++) {
      let k = 3u * (y * size + x);
      sum += saturate(vec3f(picture[k], picture[k + 1u], picture[k + 2u]));
    }
  }
  let mean = sum / f32(samples * samples);
  return vec4f(select(mean, encoded(mean), is_linear), 1.0);
}`;

export class Screen {
  #device;
  #pipeline;

  /**
   * @param {GPUDevice} device The device that holds the pictures.
   * @param {HTMLCanvasElement} canvas Square; gets `size / samples` pixels along an edge.
   * @param {number} size Pixels along an edge of a picture.
   * @param {number} samples Pixels of a picture along an edge of one pixel of the canvas.
   * @param {boolean} isDirect True if the canvas is a WebGPU canvas.
   * @param {boolean} isLinear True if pictures are in linear light.
   */
  constructor(device, canvas, size, samples, isDirect, isLinear = true) {
    this.#device = device;
    canvas.width = canvas.height = size / samples;
    const module = device.createShaderModule({ code: SHADER });
    const constants = { size, samples, is_linear: isLinear };
    this.#pipeline = device.createRenderPipeline({
      layout: "auto",
      vertex: { module },
      fragment: { module, constants, targets: [{ format: FORMAT }] },
    });
    /** Shows a picture, of which only the buffer and its offset are needed. */
    this.show = isDirect ? this.#direct(canvas) : this.#copied(canvas);
  }

  #direct(canvas) {
    const context = canvas.getContext("webgpu");
    context.configure({ device: this.#device, format: FORMAT });
    return async (picture) => this.#draw(picture, context.getCurrentTexture());
  }

  #draw({ buffer, offset }, texture) {
    const encoder = this.#device.createCommandEncoder();
    const pass = encoder.beginRenderPass({
      colorAttachments: [{ view: texture.createView(), loadOp: "clear", storeOp: "store" }],
    });
    const layout = this.#pipeline.getBindGroupLayout(0);
    const entries = [{ binding: 0, resource: { buffer, offset } }];
    pass.setPipeline(this.#pipeline);
    pass.setBindGroup(0, this.#device.createBindGroup({ layout, entries }));
    pass.draw(3);
    pass.end();
    this.#device.queue.submit([encoder.finish()]);
  }

  #copied(canvas) {
    const edge = canvas.width;
    const context = canvas.getContext("2d");
    const bytesPerRow = Math.ceil((4 * edge) / ROW_BYTES) * ROW_BYTES;
    const texture = this.#device.createTexture({
      size: [edge, edge],
      format: FORMAT,
      usage: GPUTextureUsage.RENDER_ATTACHMENT | GPUTextureUsage.COPY_SRC,
    });
    const staging = this.#device.createBuffer({
      size: bytesPerRow * edge,
      usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
    });
    return async (picture) => {
      this.#draw(picture, texture);
      const encoder = this.#device.createCommandEncoder();
      encoder.copyTextureToBuffer({ texture }, { buffer: staging, bytesPerRow }, [edge, edge]);
      this.#device.queue.submit([encoder.finish()]);
      await staging.mapAsync(GPUMapMode.READ);
      const bytes = new Uint8ClampedArray(staging.getMappedRange().slice());
      staging.unmap();
      context.putImageData(new ImageData(bytes, bytesPerRow / 4), 0, 0);
    };
  }
}
