// The gradient of a mesh, by Vulkan from the files of a build: no Python, no JSON.
//
//     mesh_gradient FOLDER [spirv|hlsl]
//
// FOLDER is the output of prepare.py. The build's kernels.h has all bindings, constants and structs
// of manifest.json. `spirv` runs the SPIR-V of the build. `hlsl` runs SPIR-V that was compiled from
// its HLSL (README.md has the command), to show that this text computes the same.

#include "data.h"
#include "kernels.h"

namespace {

/// The shifts passed to glslangValidator, because HLSL counts the registers of each class from 0,
/// but Vulkan counts all bindings together.
constexpr uint32_t shifted(char register_class, uint32_t number) {
    return number + (register_class == 't' ? 16 : register_class == 'u' ? 32 : 0);
}

static_assert(KERNELS_SPIRV_SQUARED_ERROR_BWD_PARAMETERS_SET == 0 &&
                  KERNELS_HLSL_SQUARED_ERROR_BWD_PARAMETERS_SPACE == 0,
              "this host binds set 0, and so wants a build without --space");

#define SPIRV_SLOT(entry, name) KERNELS_SPIRV_SQUARED_ERROR_##entry##_##name##_BINDING
#define HLSL_SLOT(entry, name)                                               \
    shifted(KERNELS_HLSL_SQUARED_ERROR_##entry##_##name##_REGISTER_CLASS,    \
            KERNELS_HLSL_SQUARED_ERROR_##entry##_##name##_REGISTER)

#define PRIMAL_SLOTS(SLOT)                                                                       \
    {                                                                                            \
        {SLOT(PRIMAL, PARAMETERS), "parameters"}, {SLOT(PRIMAL, TOTAL_WORDS), "total"},          \
        {SLOT(PRIMAL, MESH_CORNERS_WORDS), "mesh_corners"},                                      \
        {SLOT(PRIMAL, MESH_COLORS_WORDS), "mesh_colors"},                                        \
        {SLOT(PRIMAL, SAMPLES_WORDS), "samples"}, {SLOT(PRIMAL, TARGET_WORDS), "target"},        \
        {SLOT(PRIMAL, REPORT_WORDS), "report"}                                                   \
    }
#define BACKWARD_SLOTS(SLOT)                                                                     \
    {                                                                                            \
        {SLOT(BWD, PARAMETERS), "parameters"}, {SLOT(BWD, TOTAL_BAR_WORDS), "total_bar"},        \
        {SLOT(BWD, MESH_CORNERS_WORDS), "mesh_corners"},                                         \
        {SLOT(BWD, MESH_COLORS_WORDS), "mesh_colors"},                                           \
        {SLOT(BWD, MESH_COLORS_BAR_WORDS), "mesh_colors_bar"},                                   \
        {SLOT(BWD, SAMPLES_WORDS), "samples"}, {SLOT(BWD, SAMPLES_BAR_WORDS), "samples_bar"},    \
        {SLOT(BWD, TARGET_WORDS), "target"}, {SLOT(BWD, TARGET_BAR_WORDS), "target_bar"},        \
        {SLOT(BWD, REPORT_WORDS), "report"}                                                      \
    }

struct Lengths {
    uint32_t corners, colors, samples;
};

template <class Parameters>
Parameters common_parameters(const Lengths& lengths) {
    Parameters words{};  // Arrays start at their buffers, so all offsets are 0.
    words.thread_count = lengths.samples;
    words.mesh_corners_length = lengths.corners;
    words.mesh_colors_length = lengths.colors;
    words.samples_length = lengths.samples;
    words.target_length = lengths.samples;
    words.total_length = 1;
    return words;
}

/// Sums in a limited number of workgroups, each of which takes a tile of the samples.
template <class Parameters>
Program primal(std::string file, const char* entry_point, std::vector<Slot> slots,
               const Lengths& lengths, uint32_t group_size, uint32_t group_limit) {
    const uint32_t groups = std::min(divide_up(lengths.samples, group_size), group_limit);
    auto words = common_parameters<Parameters>(lengths);
    words.tile = divide_up(lengths.samples, groups * group_size) * group_size;
    return {std::move(file), entry_point, std::move(slots), bytes_of(words), groups};
}

/// One thread per sample.
template <class Parameters>
Program backward(std::string file, const char* entry_point, std::vector<Slot> slots,
                 const Lengths& lengths, uint32_t group_size) {
    const uint32_t groups = divide_up(lengths.samples, group_size);
    auto words = common_parameters<Parameters>(lengths);
    words.group_count_x = groups;
    return {std::move(file), entry_point, std::move(slots), bytes_of(words), groups};
}

std::vector<Program> spirv_programs(const Lengths& lengths) {
    return {
        primal<kernels_spirv_squared_error_primal_parameters>(
            KERNELS_SPIRV_SQUARED_ERROR_PRIMAL_FILE,
            KERNELS_SPIRV_SQUARED_ERROR_PRIMAL_ENTRY_POINT, PRIMAL_SLOTS(SPIRV_SLOT), lengths,
            KERNELS_SPIRV_SQUARED_ERROR_PRIMAL_WORKGROUP_X,
            KERNELS_SPIRV_SQUARED_ERROR_PRIMAL_GROUP_LIMIT),
        backward<kernels_spirv_squared_error_bwd_parameters>(
            KERNELS_SPIRV_SQUARED_ERROR_BWD_FILE, KERNELS_SPIRV_SQUARED_ERROR_BWD_ENTRY_POINT,
            BACKWARD_SLOTS(SPIRV_SLOT), lengths, KERNELS_SPIRV_SQUARED_ERROR_BWD_WORKGROUP_X),
    };
}

std::vector<Program> hlsl_programs(const Lengths& lengths) {
    const std::string suffix = ".spv";  // glslangValidator compiled `squared_error_bwd.hlsl`.
    return {
        primal<kernels_hlsl_squared_error_primal_parameters>(
            KERNELS_HLSL_SQUARED_ERROR_PRIMAL_FILE + suffix,
            KERNELS_HLSL_SQUARED_ERROR_PRIMAL_ENTRY_POINT, PRIMAL_SLOTS(HLSL_SLOT), lengths,
            KERNELS_HLSL_SQUARED_ERROR_PRIMAL_WORKGROUP_X,
            KERNELS_HLSL_SQUARED_ERROR_PRIMAL_GROUP_LIMIT),
        backward<kernels_hlsl_squared_error_bwd_parameters>(
            KERNELS_HLSL_SQUARED_ERROR_BWD_FILE + suffix,
            KERNELS_HLSL_SQUARED_ERROR_BWD_ENTRY_POINT, BACKWARD_SLOTS(HLSL_SLOT), lengths,
            KERNELS_HLSL_SQUARED_ERROR_BWD_WORKGROUP_X),
    };
}

}  // namespace

int main(int count, char** arguments) {
    const std::string target = count > 2 ? arguments[2] : "spirv";
    if (count < 2 || (target != "spirv" && target != "hlsl")) {
        fail("usage: mesh_gradient FOLDER [spirv|hlsl]");
    }
    const std::string folder = arguments[1], data = folder + "/mesh_data";
    std::map<std::string, Bytes> contents;
    for (const char* name : {"mesh_corners", "mesh_colors", "samples", "target"}) {
        contents[name] = read_file(data + "/" + name + ".bin");
    }
    // Written arrays start as zeros, the FILL_WORD of kernels.h.
    for (const char* name : {"mesh_colors", "samples", "target"}) {
        contents[name + std::string("_bar")] = Bytes(contents[name].size());
    }
    contents["total"] = Bytes(sizeof(float));
    contents["total_bar"] = bytes_of(1.0F);
    contents["report"] = Bytes(KERNELS_REPORT_BYTES);
    const auto length = [&](const char* name, size_t element) {
        return static_cast<uint32_t>(contents[name].size() / element);
    };
    const Lengths lengths{length("mesh_corners", 3 * sizeof(int32_t)),
                          length("mesh_colors", 3 * sizeof(float)),
                          length("samples", sizeof(kernels_Sample))};

    Gpu gpu(target == "spirv");
    Resources arrays;
    for (const auto& [name, content] : contents) arrays[name] = gpu.buffer(content);
    for (const Program& program :
         target == "spirv" ? spirv_programs(lengths) : hlsl_programs(lengths)) {
        gpu.run(folder + "/mesh", program, arrays);
    }

    check_report(arrays["report"]);
    bool is_right = agrees(data, "total", arrays["total"]);
    for (const char* name : {"mesh_colors", "samples", "target"}) {
        is_right = agrees(data, name, arrays[name + std::string("_bar")]) && is_right;
    }
    std::printf("%s\n", is_right ? "PASS" : "FAIL");
    return is_right ? 0 : 1;
}
