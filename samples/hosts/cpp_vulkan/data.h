// The files of prepare.py: arguments, and the results of the Python API for them.

#pragma once

#include <cmath>

#include "gpu.h"

// Relative to the largest number: float32, hundreds of terms added in any order.
constexpr double kTolerance = 1e-5;

inline uint32_t divide_up(uint32_t count, uint32_t by) { return (count + by - 1) / by; }

template <class T>
Bytes bytes_of(const T& value) {
    const char* start = reinterpret_cast<const char*>(&value);
    return Bytes(start, start + sizeof value);
}

inline void check_report(const Resource& report) {
    uint32_t count;
    std::memcpy(&count, report.data, sizeof count);
    if (count) fail(std::to_string(count) + " threads met an index out of range");
}

/// True if an array agrees with that of the Python API; all its parts are float32, or zero.
inline bool agrees(const std::string& folder, const std::string& name, const Resource& array,
                   double tolerance = kTolerance) {
    const Bytes expected = read_file(folder + "/expected_" + name + ".bin");
    if (expected.size() != array.size) fail("expected_" + name + ".bin has another size");
    std::vector<float> wanted(expected.size() / 4), found(wanted.size());
    std::memcpy(wanted.data(), expected.data(), expected.size());
    std::memcpy(found.data(), array.data, array.size);
    double error = 0, largest = 0;
    for (size_t k = 0; k < wanted.size(); ++k) {
        const double miss = std::fabs(static_cast<double>(found[k]) - wanted[k]);
        error = std::max(error, std::isnan(miss) ? INFINITY : miss);
        largest = std::max<double>(largest, std::fabs(wanted[k]));
    }
    std::printf("%-12s error %.1e\n", name.c_str(), error / largest);
    return error <= tolerance * largest;
}
