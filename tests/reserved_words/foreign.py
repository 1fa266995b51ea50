"""Words that Slang, HLSL, WGSL, Metal, C and C++ keep for themselves or their libraries.

Sources: HLSL "Keywords" and "Reserved Words" (Microsoft), WGSL sections 15.1 and 15.2 (W3C), Metal
Shading Language specification sections 1.4 and 2, C11 section 6.4.1, C++20 section 5.11.
"""

from __future__ import annotations

SLANG = """
writeonly centroid flat dynamic_uniform payload borrow constref ref instance sealed open require
vertices indices primitives hitAttributeEXT rayPayloadEXT callablePayloadEXT nonuniform yield
await async lambda target_switch intrinsic_asm attribute_syntax type_param nameof typeof unmanaged
differentiable IArray IFloat IInteger IArithmetic ILogical Atomic CoopVec TensorView bit_cast
reinterpret createDynamicObject getStringHash unused static_cast_to Result none_type init subscript
get set modify didSet willSet where_clause IFunc functor apply_all __generic_value slang core glsl
""".split()

HLSL = """
AppendStructuredBuffer BlendState Buffer ByteAddressBuffer CompileShader ComputeShader
ConsumeStructuredBuffer DepthStencilState DepthStencilView DomainShader GeometryShader Hullshader
InputPatch LineStream OutputPatch PixelShader PointStream RasterizerState RenderTargetView
RWBuffer RWTexture1D RWTexture2D RWTexture3D SamplerState SamplerComparisonState StateObject
Texture1D Texture2D Texture2DMS Texture3D TextureCube TriangleStream VertexShader NULL
AllMemoryBarrier InterlockedAdd InterlockedExchange NonUniformResourceIndex WaveActiveSum
WaveGetLaneIndex SV_GroupID SV_GroupIndex SV_DispatchThreadID numthreads min16float min16int
min10float auto const_cast dynamic_cast reinterpret_cast static_cast fxgroup technique10
technique11 unsigned int64 dword errorf msad4 f16tof32 f32tof16 reversebits sincos ldexp
""".split()

WGSL = """
alias bitcast const_assert diagnostic enable fn loop requires storage workgroup read_write f16 f32
i32 u32 vec2f vec3u mat4x4f ptr atomic NULL Self abstract active alignas alignof asm asm_fragment
async attribute auto await become binding_array cast catch class co_await co_return co_yield
coherent column_major common compile compile_fragment concept const_cast consteval constexpr
constinit crate debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit
export extends extern external fallthrough filter final finally friend from fxgroup get goto
groupshared highp impl implements import inline instanceof interface layout lowp macro macro_rules
match mediump meta mod module move mut mutable namespace new nil noexcept noinline nointerpolation
noperspective null nullptr of operator package packoffset partition pass patch pixelfragment
precise precision premerge priv protected pub public readonly ref regardless register
reinterpret_cast resource restrict self set shared sizeof smooth snorm static static_assert
static_cast std subroutine super target template this thread_local throw trait try type typedef
typeid typename typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl
where workgroupBarrier arrayLength dpdx textureSample quantizeToF16
""".split()

METAL = """
kernel device constant thread threadgroup threadgroup_imageblock ray_data object_data stage_in
buffer texture2d sampler array_ref access simd_sum simd_shuffle metal fast precise fma rint
as_type atomic_uint packed_float3 half4x4 uchar ushort ulong visible intersection position
thread_position_in_grid threads_per_threadgroup memory_order_relaxed discard_fragment main
""".split()

C = """
NULL assert auto char8_t char16_t char32_t double else enum errno extern far float INT8_C
INT32_MAX int8_t linux long near offsetof restrict short signed size_t stdin struct switch
typedef typeof uint32_t uintptr_t unix unsigned void volatile wchar_t and_eq bitand bitor compl
not_eq or_eq xor xor_eq concept requires constexpr decltype export mutable noexcept nullptr
private protected public static_assert template this thread_local typeid typename using virtual
""".split()
