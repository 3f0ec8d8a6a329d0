#pragma once

#include <string>

namespace tutti {

// What has to agree between libtutti.so and what is loaded beside it, "tutti 0.1.0, libtorch 2.11,
// GNU 12.2.0"; `elsewhere` where this code does not run in libtutti.so.
std::string build_stamp(const std::string& elsewhere);

// The same with what the code came from: "..., commit 2c63f0a", "-dirty" behind it where files were changed;
// "unknown" where it was built outside of git.
std::string build_and_commit(const std::string& elsewhere);

}  // namespace tutti
