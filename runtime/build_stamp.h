#pragma once

#include <string>

namespace tutti {

// What has to agree between libtutti.so and what is loaded beside it, "tutti 0.1.0, libtorch 2.11,
// GNU 12.2.0"; `elsewhere` where this code does not run in libtutti.so.
std::string build_stamp(const std::string& elsewhere);

}  // namespace tutti
