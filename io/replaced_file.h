#pragma once

#include <string>
#include <string_view>

#include "runtime/disk.h"

namespace tutti {

// Replaces a file by these bytes: readers never see a part of it, also if the process is killed. Throws
// OperatingError.
void replace_file(Disk& disk, const std::string& path, std::string_view bytes);

}  // namespace tutti
