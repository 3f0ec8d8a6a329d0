#pragma once

#include <string>

#include "recipe/setting.h"

namespace tutti {

// The value at a path below a table, "variables.max_seq_len"; "" is the table. Null if there is none.
const Setting* setting_at(const Setting& table, const std::string& path);

// "lr" of "optimizer.lr"; a path without dots is its own last part.
std::string last_part(const std::string& path);

}  // namespace tutti
