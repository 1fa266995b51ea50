// The gradient of a texture, by Vulkan from the files of a build: the program samples a VkImage by a
// VkSampler, and adds the cotangent of each texel to a buffer.
//
//     texture_gradient FOLDER
//
// FOLDER is the output of prepare.py. mesh.cpp explains more about the inputs of programs.

#include <string_view>

#include "data.h"
#include "textured.h"

namespace {

// For texture units of GPUs, which filter with weights of eight bits.
constexpr double kUnitTolerance = 4e-3;

/// The extents of the picture of prepare.py, with four floats per texel.
constexpr uint32_t kColumns = 24, kRows = 16, kLevels = 2;

/// Linear between texels and between levels; without wrap bits, the picture repeats.
constexpr uint32_t kSettings = TEXTURED_SAMPLER_LINEAR | TEXTURED_SAMPLER_MIXES_LEVELS;

#define IN_PRIMAL(name) TEXTURED_SPIRV_SQUARED_DIFFERENCE_PRIMAL_##name
#define IN_BACKWARD(name) TEXTURED_SPIRV_SQUARED_DIFFERENCE_BWD_##name

static_assert(std::string_view(IN_PRIMAL(PICTURE_TEXTURE_VIEW)) == "2d" &&
                  std::string_view(IN_BACKWARD(PICTURE_TEXTURE_VIEW)) == "2d",
              "gpu.h makes textures of two dimensions");

/// Texels of all levels, of which the gradient is an array.
constexpr uint32_t texels() {
    uint32_t count = 0;
    for (uint32_t level = 0; level < kLevels; ++level) {
        count += extent_of(kColumns, level) * extent_of(kRows, level);
    }
    return count;
}

template <class Parameters>
Parameters common_parameters(uint32_t places) {
    Parameters words{};  // Arrays start at their buffers, so all offsets are 0.
    words.thread_count = places;
    words.picture_size_0 = kColumns;
    words.picture_size_1 = kRows;
    words.picture_size_2 = 1;
    words.picture_size_3 = kLevels;
    words.smooth_settings = kSettings;
    words.picture_length = texels();
    words.at_length = places;
    words.target_length = places;
    words.total_length = 1;
    return words;
}

/// Sums in a limited number of workgroups, each of which takes a tile of the points.
Program primal(uint32_t places) {
    constexpr uint32_t kGroup = IN_PRIMAL(WORKGROUP_X);
    const uint32_t groups = std::min<uint32_t>(divide_up(places, kGroup), IN_PRIMAL(GROUP_LIMIT));
    auto words =
        common_parameters<textured_spirv_squared_difference_primal_parameters>(places);
    words.tile = divide_up(places, groups * kGroup) * kGroup;
    return {IN_PRIMAL(FILE),
            IN_PRIMAL(ENTRY_POINT),
            {{IN_PRIMAL(PARAMETERS_BINDING), "parameters"},
             {IN_PRIMAL(PICTURE_TEXTURE_BINDING), "picture"},
             {IN_PRIMAL(SMOOTH_SAMPLER_BINDING), "smooth"},
             {IN_PRIMAL(AT_WORDS_BINDING), "at"},
             {IN_PRIMAL(TARGET_WORDS_BINDING), "target"},
             {IN_PRIMAL(TOTAL_WORDS_BINDING), "total"},
             {IN_PRIMAL(REPORT_WORDS_BINDING), "report"}},
            bytes_of(words),
            groups};
}

/// One thread per point. It loads the texels that the sampler mixes, so it needs no sampler.
Program backward(uint32_t places) {
    const uint32_t groups = divide_up(places, IN_BACKWARD(WORKGROUP_X));
    auto words = common_parameters<textured_spirv_squared_difference_bwd_parameters>(places);
    words.group_count_x = groups;
    return {IN_BACKWARD(FILE),
            IN_BACKWARD(ENTRY_POINT),
            {{IN_BACKWARD(PARAMETERS_BINDING), "parameters"},
             {IN_BACKWARD(PICTURE_TEXTURE_BINDING), "picture"},
             {IN_BACKWARD(PICTURE_BAR_WORDS_BINDING), "picture_bar"},
             {IN_BACKWARD(AT_WORDS_BINDING), "at"},
             {IN_BACKWARD(AT_BAR_WORDS_BINDING), "at_bar"},
             {IN_BACKWARD(TARGET_WORDS_BINDING), "target"},
             {IN_BACKWARD(TARGET_BAR_WORDS_BINDING), "target_bar"},
             {IN_BACKWARD(TOTAL_BAR_WORDS_BINDING), "total_bar"},
             {IN_BACKWARD(REPORT_WORDS_BINDING), "report"}},
            bytes_of(words),
            groups};
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) fail("usage: texture_gradient FOLDER");
    const std::string folder = arguments[1], data = folder + "/texture_data";
    const std::vector<Bytes> levels{read_file(data + "/picture.bin"),
                                    read_file(data + "/picture_mip.bin")};
    const Bytes at = read_file(data + "/at.bin"), target = read_file(data + "/target.bin");
    const auto places = static_cast<uint32_t>(at.size() / (2 * sizeof(float)));

    Gpu gpu(true);
    Resources resources{
        {"picture", gpu.texture(levels, kColumns, kRows, VK_FORMAT_R32G32B32A32_SFLOAT,
                                IN_PRIMAL(PICTURE_TEXTURE_IS_FILTERED))},
        {"smooth", gpu.sampler(kSettings)},
        {"at", gpu.buffer(at)},
        {"target", gpu.buffer(target)},
        // Written arrays start as zeros, the FILL_WORD of textured.h.
        {"total", gpu.buffer(Bytes(sizeof(float)))},
        {"picture_bar", gpu.buffer(Bytes(4 * sizeof(float) * texels()))},
        {"at_bar", gpu.buffer(Bytes(at.size()))},
        {"target_bar", gpu.buffer(Bytes(target.size()))},
        {"total_bar", gpu.buffer(bytes_of(1.0F))},
        {"report", gpu.buffer(Bytes(TEXTURED_REPORT_BYTES))},
    };
    for (const Program& program : {primal(places), backward(places)}) {
        gpu.run(folder + "/texture", program, resources);
    }

    check_report(resources["report"]);
    bool is_right = agrees(data, "total", resources["total"], kUnitTolerance);
    for (const char* name : {"picture", "at", "target"}) {
        is_right = agrees(data, name, resources[name + std::string("_bar")]) && is_right;
    }
    std::printf("%s\n", is_right ? "PASS" : "FAIL");
    return is_right ? 0 : 1;
}
