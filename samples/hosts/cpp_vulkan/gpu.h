// A minimal Vulkan device that runs compute programs over host-visible buffers, textures and
// samplers.

#pragma once

#include <vulkan/vulkan.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

using Bytes = std::vector<char>;

[[noreturn]] inline void fail(const std::string& reason) {
    std::fprintf(stderr, "error: %s\n", reason.c_str());
    std::exit(1);
}

inline void check(VkResult result, const char* what) {
    if (result != VK_SUCCESS) fail(std::string(what) + ": Vulkan error " + std::to_string(result));
}

inline Bytes read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail("cannot read " + path + "; run prepare.py");
    return Bytes(std::istreambuf_iterator<char>(file), {});
}

/// The slot at which a program binds a resource, by our own name.
struct Slot {
    uint32_t binding;
    const char* resource;
};

/// One entry point. The first slot is the constant buffer.
struct Program {
    std::string file;
    const char* entry_point;
    std::vector<Slot> slots;
    Bytes parameters;
    uint32_t groups;
};

/// A resource that programs bind: a buffer, a texture or a sampler.
struct Resource {
    VkDescriptorType kind;
    VkDescriptorBufferInfo buffer;
    VkDescriptorImageInfo image;
    /// For a buffer, its host-visible memory, which is always mapped.
    void* data;
    size_t size;
};

using Resources = std::map<std::string, Resource>;

/// Texels along x or y on a mip level.
constexpr uint32_t extent_of(uint32_t texels, uint32_t level) {
    return std::max(1u, texels >> level);
}

/// A device with one queue. The objects that it creates live until the process ends.
class Gpu {
  public:
    explicit Gpu(bool needs_float_atomics);

    /// A buffer with this content.
    Resource buffer(const Bytes& content,
                    VkDescriptorType kind = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER);
    /// A texture of two dimensions with these mip levels, each as texels row by row.
    Resource texture(const std::vector<Bytes>& levels, uint32_t columns, uint32_t rows,
                     VkFormat format, bool is_filtered);
    /// A sampler with these settings: the SAMPLER bits of the build's header.
    Resource sampler(uint32_t settings);
    /// Runs a program and waits for it.
    void run(const std::string& folder, const Program& program, const Resources& resources);

  private:
    bool choose(VkPhysicalDevice candidate, bool needs_float_atomics);
    VkDeviceMemory memory(const VkMemoryRequirements& needs, VkMemoryPropertyFlags wanted);
    VkPipeline pipeline(const std::string& path, const char* entry_point, VkPipelineLayout layout);
    VkPipelineLayout layout(const std::vector<VkDescriptorSetLayoutBinding>& bindings,
                            VkDescriptorSet& set);
    template <class Record>
    void submit(Record record);

    VkPhysicalDevice physical_ = VK_NULL_HANDLE;
    VkDevice device_ = VK_NULL_HANDLE;
    VkQueue queue_ = VK_NULL_HANDLE;
    VkCommandPool commands_ = VK_NULL_HANDLE;
    VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
    uint32_t family_ = 0;
};

inline bool Gpu::choose(VkPhysicalDevice candidate, bool needs_float_atomics) {
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomics{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT};
    VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &atomics};
    vkGetPhysicalDeviceFeatures2(candidate, &features);
    VkPhysicalDeviceSubgroupProperties subgroups{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           &subgroups};
    vkGetPhysicalDeviceProperties2(candidate, &properties);
    if (properties.properties.apiVersion < VK_API_VERSION_1_2) return false;
    if (!(subgroups.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT)) return false;
    if (needs_float_atomics && !atomics.shaderBufferFloat32AtomicAdd) return false;
    uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(candidate, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(candidate, &count, families.data());
    for (family_ = 0; family_ < count; ++family_) {
        if (families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT) {
            physical_ = candidate;
            std::printf("%s\n", properties.properties.deviceName);
            return true;
        }
    }
    return false;
}

inline Gpu::Gpu(bool needs_float_atomics) {
    VkApplicationInfo app{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    app.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo instance_info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    instance_info.pApplicationInfo = &app;
    VkInstance instance;
    if (vkCreateInstance(&instance_info, nullptr, &instance) != VK_SUCCESS) {
        fail("no Vulkan driver");
    }
    uint32_t count = 0;
    vkEnumeratePhysicalDevices(instance, &count, nullptr);
    std::vector<VkPhysicalDevice> candidates(count);
    vkEnumeratePhysicalDevices(instance, &count, candidates.data());
    const auto found = std::find_if(candidates.begin(), candidates.end(), [&](auto candidate) {
        return choose(candidate, needs_float_atomics);
    });
    if (found == candidates.end()) {
        fail("no Vulkan 1.2 device with subgroup arithmetic" +
             std::string(needs_float_atomics ? " and atomic addition of floats" : ""));
    }

    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomics{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT};
    atomics.shaderBufferFloat32AtomicAdd = VK_TRUE;
    atomics.shaderBufferFloat32Atomics = VK_TRUE;
    const float priority = 1.0F;
    VkDeviceQueueCreateInfo queue_info{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue_info.queueFamilyIndex = family_;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    VkDeviceCreateInfo device_info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queue_info;
    const char* extension = VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME;
    if (needs_float_atomics) {
        device_info.pNext = &atomics;
        device_info.enabledExtensionCount = 1;
        device_info.ppEnabledExtensionNames = &extension;
    }
    check(vkCreateDevice(physical_, &device_info, nullptr, &device_), "vkCreateDevice");
    vkGetDeviceQueue(device_, family_, 0, &queue_);
    VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool_info.queueFamilyIndex = family_;
    check(vkCreateCommandPool(device_, &pool_info, nullptr, &commands_), "vkCreateCommandPool");
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 8},
                                          {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 64},
                                          {VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, 8},
                                          {VK_DESCRIPTOR_TYPE_SAMPLER, 8}};
    VkDescriptorPoolCreateInfo sets_info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    sets_info.maxSets = 8;
    sets_info.poolSizeCount = 4;
    sets_info.pPoolSizes = sizes;
    check(vkCreateDescriptorPool(device_, &sets_info, nullptr, &descriptors_),
          "vkCreateDescriptorPool");
}

inline VkDeviceMemory Gpu::memory(const VkMemoryRequirements& needs,
                                  VkMemoryPropertyFlags wanted) {
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
    uint32_t type = 0;  // Vulkan guarantees that there is one.
    while (!(needs.memoryTypeBits >> type & 1) ||
           (memory.memoryTypes[type].propertyFlags & wanted) != wanted) {
        ++type;
    }
    VkMemoryAllocateInfo block{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needs.size, type};
    VkDeviceMemory allocated;
    check(vkAllocateMemory(device_, &block, nullptr, &allocated), "vkAllocateMemory");
    return allocated;
}

inline Resource Gpu::buffer(const Bytes& content, VkDescriptorType kind) {
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = std::max<size_t>(content.size(), 16);
    info.usage = VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
    VkBuffer handle;
    check(vkCreateBuffer(device_, &info, nullptr, &handle), "vkCreateBuffer");
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device_, handle, &needs);
    const VkDeviceMemory block = memory(
        needs, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    check(vkBindBufferMemory(device_, handle, block, 0), "vkBindBufferMemory");
    Resource made{kind, {handle, 0, VK_WHOLE_SIZE}, {}, nullptr, content.size()};
    check(vkMapMemory(device_, block, 0, VK_WHOLE_SIZE, 0, &made.data), "vkMapMemory");
    std::memcpy(made.data, content.data(), content.size());
    return made;
}

/// Makes texels written before visible to programs, in another layout.
inline void change_layout(VkCommandBuffer commands, VkImage image, VkImageLayout from,
                          VkImageLayout to) {
    const VkImageSubresourceRange all{VK_IMAGE_ASPECT_COLOR_BIT, 0, VK_REMAINING_MIP_LEVELS, 0, 1};
    const VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER, nullptr,
                                       VK_ACCESS_MEMORY_WRITE_BIT,
                                       VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
                                       from, to, VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED,
                                       image, all};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                         VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, nullptr, 0, nullptr, 1,
                         &barrier);
}

inline Resource Gpu::texture(const std::vector<Bytes>& levels, uint32_t columns, uint32_t rows,
                             VkFormat format, bool is_filtered) {
    VkFormatProperties can;
    vkGetPhysicalDeviceFormatProperties(physical_, format, &can);
    if (is_filtered &&
        !(can.optimalTilingFeatures & VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT)) {
        fail("the device does not filter textures of this format; take 8 or 16 bits a channel");
    }
    VkImageCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
    info.imageType = VK_IMAGE_TYPE_2D;
    info.format = format;
    info.extent = {columns, rows, 1};
    info.mipLevels = static_cast<uint32_t>(levels.size());
    info.arrayLayers = 1;
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    VkImage image;
    check(vkCreateImage(device_, &info, nullptr, &image), "vkCreateImage");
    VkMemoryRequirements needs;
    vkGetImageMemoryRequirements(device_, image, &needs);
    const VkDeviceMemory block = memory(needs, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    check(vkBindImageMemory(device_, image, block, 0), "vkBindImageMemory");
    submit([&](VkCommandBuffer commands) {
        constexpr VkImageLayout kWritten = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
        change_layout(commands, image, VK_IMAGE_LAYOUT_UNDEFINED, kWritten);
        for (uint32_t level = 0; level < levels.size(); ++level) {
            VkBufferImageCopy copy{};
            copy.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, level, 0, 1};
            copy.imageExtent = {extent_of(columns, level), extent_of(rows, level), 1};
            vkCmdCopyBufferToImage(commands, buffer(levels[level]).buffer.buffer, image, kWritten,
                                   1, &copy);
        }
        change_layout(commands, image, kWritten, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
    });
    VkImageViewCreateInfo view_info{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
    view_info.image = image;
    view_info.viewType = VK_IMAGE_VIEW_TYPE_2D;
    view_info.format = format;
    view_info.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, info.mipLevels, 0, 1};
    Resource made{VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, {}, {}, nullptr, 0};
    made.image.imageLayout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL;
    check(vkCreateImageView(device_, &view_info, nullptr, &made.image.imageView),
          "vkCreateImageView");
    return made;
}

inline Resource Gpu::sampler(uint32_t settings) {
    constexpr VkSamplerAddressMode kWraps[] = {VK_SAMPLER_ADDRESS_MODE_REPEAT,
                                               VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                               VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT};
    VkSamplerCreateInfo info{VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
    info.addressModeU = kWraps[settings & 3];
    info.addressModeV = kWraps[settings >> 2 & 3];
    info.addressModeW = kWraps[settings >> 4 & 3];
    info.magFilter = info.minFilter = settings >> 6 & 1 ? VK_FILTER_LINEAR : VK_FILTER_NEAREST;
    info.mipmapMode =
        settings >> 7 & 1 ? VK_SAMPLER_MIPMAP_MODE_LINEAR : VK_SAMPLER_MIPMAP_MODE_NEAREST;
    info.maxLod = VK_LOD_CLAMP_NONE;
    Resource made{VK_DESCRIPTOR_TYPE_SAMPLER, {}, {}, nullptr, 0};
    check(vkCreateSampler(device_, &info, nullptr, &made.image.sampler), "vkCreateSampler");
    return made;
}

inline VkPipeline Gpu::pipeline(const std::string& path, const char* entry_point,
                         VkPipelineLayout layout) {
    const Bytes code = read_file(path);
    std::vector<uint32_t> words(code.size() / 4);
    std::memcpy(words.data(), code.data(), 4 * words.size());
    VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    module_info.codeSize = 4 * words.size();
    module_info.pCode = words.data();
    VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.pName = entry_point;
    info.layout = layout;
    check(vkCreateShaderModule(device_, &module_info, nullptr, &info.stage.module),
          "vkCreateShaderModule");
    VkPipeline made;
    check(vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &made),
          "vkCreateComputePipelines");
    return made;
}

/// The layout of a pipeline with these bindings, and a set of them.
inline VkPipelineLayout Gpu::layout(const std::vector<VkDescriptorSetLayoutBinding>& bindings,
                                    VkDescriptorSet& set) {
    VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set_info.bindingCount = static_cast<uint32_t>(bindings.size());
    set_info.pBindings = bindings.data();
    VkDescriptorSetLayout set_layout;
    check(vkCreateDescriptorSetLayout(device_, &set_info, nullptr, &set_layout),
          "vkCreateDescriptorSetLayout");
    VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr,
                                     descriptors_, 1, &set_layout};
    check(vkAllocateDescriptorSets(device_, &info, &set), "vkAllocateDescriptorSets");
    VkPipelineLayoutCreateInfo layout_info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout_info.setLayoutCount = 1;
    layout_info.pSetLayouts = &set_layout;
    VkPipelineLayout made;
    check(vkCreatePipelineLayout(device_, &layout_info, nullptr, &made), "vkCreatePipelineLayout");
    return made;
}

inline void Gpu::run(const std::string& folder, const Program& program,
                     const Resources& resources) {
    const Resource constants = buffer(program.parameters, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER);
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    std::vector<VkWriteDescriptorSet> writes;
    for (const Slot& slot : program.slots) {
        const bool is_constants = &slot == &program.slots.front();
        const Resource& bound = is_constants ? constants : resources.at(slot.resource);
        bindings.push_back({slot.binding, bound.kind, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
        writes.push_back({VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, VK_NULL_HANDLE,
                          slot.binding, 0, 1, bound.kind, &bound.image, &bound.buffer, nullptr});
    }
    VkDescriptorSet set;
    const VkPipelineLayout bound_as = layout(bindings, set);
    for (VkWriteDescriptorSet& write : writes) write.dstSet = set;
    vkUpdateDescriptorSets(device_, static_cast<uint32_t>(writes.size()), writes.data(), 0,
                           nullptr);
    const VkPipeline code = pipeline(folder + "/" + program.file, program.entry_point, bound_as);
    submit([&](VkCommandBuffer commands) {
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, code);
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, bound_as, 0, 1, &set, 0,
                                nullptr);
        vkCmdDispatch(commands, program.groups, 1, 1);
        const VkMemoryBarrier to_host{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                                      VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_HOST_READ_BIT};
        vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                             VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, nullptr, 0, nullptr);
    });
}

/// Runs the commands that `record` records, and waits for them.
template <class Record>
void Gpu::submit(Record record) {
    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr,
                                     commands_, VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    VkCommandBuffer commands;
    check(vkAllocateCommandBuffers(device_, &info, &commands), "vkAllocateCommandBuffers");
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
    record(commands);
    check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    check(vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
    check(vkQueueWaitIdle(queue_), "vkQueueWaitIdle");
}
