// A Vulkan device that runs compute programs over buffers that the host sees, and no more.

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

/// Where a program binds an array, by a name of ours.
struct Slot {
    uint32_t binding;
    const char* array;
};

/// One entry point. The first slot is the constant buffer; all others are storage buffers.
struct Program {
    std::string file;
    const char* entry_point;
    std::vector<Slot> slots;
    Bytes parameters;
    uint32_t groups;
};

/// Memory that the host sees, mapped for as long as it lives.
struct Buffer {
    VkBuffer handle;
    void* data;
    size_t size;
};

/// A device with one queue. What it makes lives until the process ends.
class Gpu {
  public:
    explicit Gpu(bool needs_float_atomics);

    /// A buffer with this content.
    Buffer buffer(const Bytes& content, VkBufferUsageFlags usage);
    /// Runs a program and waits for it.
    void run(const std::string& folder, const Program& program,
             const std::map<std::string, Buffer>& arrays);

  private:
    bool choose(VkPhysicalDevice candidate, bool needs_float_atomics);
    VkPipeline pipeline(const std::string& path, const char* entry_point, VkPipelineLayout layout);
    VkDescriptorSet bound(const Program& program, VkDescriptorSetLayout layout,
                          const std::map<std::string, Buffer>& arrays);

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
                                          {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 64}};
    VkDescriptorPoolCreateInfo sets_info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    sets_info.maxSets = 8;
    sets_info.poolSizeCount = 2;
    sets_info.pPoolSizes = sizes;
    check(vkCreateDescriptorPool(device_, &sets_info, nullptr, &descriptors_),
          "vkCreateDescriptorPool");
}

inline Buffer Gpu::buffer(const Bytes& content, VkBufferUsageFlags usage) {
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = std::max<size_t>(content.size(), 16);
    info.usage = usage;
    Buffer made{VK_NULL_HANDLE, nullptr, content.size()};
    check(vkCreateBuffer(device_, &info, nullptr, &made.handle), "vkCreateBuffer");
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device_, made.handle, &needs);
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;  // Vulkan promises that there is one.
    while (!(needs.memoryTypeBits >> type & 1) ||
           (memory.memoryTypes[type].propertyFlags & wanted) != wanted) {
        ++type;
    }
    VkMemoryAllocateInfo block{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needs.size, type};
    VkDeviceMemory allocated;
    check(vkAllocateMemory(device_, &block, nullptr, &allocated), "vkAllocateMemory");
    check(vkBindBufferMemory(device_, made.handle, allocated, 0), "vkBindBufferMemory");
    check(vkMapMemory(device_, allocated, 0, VK_WHOLE_SIZE, 0, &made.data), "vkMapMemory");
    std::memcpy(made.data, content.data(), content.size());
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

inline VkDescriptorType kind_of(const Program& program, const Slot& slot) {
    const bool is_constants = &slot == &program.slots.front();
    return is_constants ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

inline VkDescriptorSet Gpu::bound(const Program& program, VkDescriptorSetLayout layout,
                           const std::map<std::string, Buffer>& arrays) {
    VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr,
                                     descriptors_, 1, &layout};
    VkDescriptorSet set;
    check(vkAllocateDescriptorSets(device_, &info, &set), "vkAllocateDescriptorSets");
    const Buffer constants = buffer(program.parameters, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT);
    for (const Slot& slot : program.slots) {
        const auto kind = kind_of(program, slot);
        const bool is_constants = kind == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
        const VkBuffer handle = is_constants ? constants.handle : arrays.at(slot.array).handle;
        const VkDescriptorBufferInfo all{handle, 0, VK_WHOLE_SIZE};
        const VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, set,
                                         slot.binding, 0, 1, kind, nullptr, &all, nullptr};
        vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
    }
    return set;
}

inline void Gpu::run(const std::string& folder, const Program& program,
              const std::map<std::string, Buffer>& arrays) {
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    for (const Slot& slot : program.slots) {
        bindings.push_back({slot.binding, kind_of(program, slot), 1, VK_SHADER_STAGE_COMPUTE_BIT,
                            nullptr});
    }
    VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set_info.bindingCount = static_cast<uint32_t>(bindings.size());
    set_info.pBindings = bindings.data();
    VkDescriptorSetLayout set_layout;
    check(vkCreateDescriptorSetLayout(device_, &set_info, nullptr, &set_layout),
          "vkCreateDescriptorSetLayout");
    VkPipelineLayoutCreateInfo layout_info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout_info.setLayoutCount = 1;
    layout_info.pSetLayouts = &set_layout;
    VkPipelineLayout layout;
    check(vkCreatePipelineLayout(device_, &layout_info, nullptr, &layout),
          "vkCreatePipelineLayout");
    const VkDescriptorSet set = bound(program, set_layout, arrays);

    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr,
                                     commands_, VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    VkCommandBuffer commands;
    check(vkAllocateCommandBuffers(device_, &info, &commands), "vkAllocateCommandBuffers");
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                      pipeline(folder + "/" + program.file, program.entry_point, layout));
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0,
                            nullptr);
    vkCmdDispatch(commands, program.groups, 1, 1);
    const VkMemoryBarrier to_host{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                                  VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_HOST_READ_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, nullptr, 0, nullptr);
    check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    check(vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
    check(vkQueueWaitIdle(queue_), "vkQueueWaitIdle");
}
