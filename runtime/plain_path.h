#pragma once

#include <string>

namespace tutti {

// The same text for the same file or folder, however it was written: absolute, without "." and "..", without
// a slash at its end. Links are not followed.
std::string plain_path(const std::string& path);

// Whether it lies in the folder, and not in one below.
bool lies_in(const std::string& path, const std::string& folder);

}  // namespace tutti
