#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "recipe/setting.h"

namespace tutti {

// A value as JSON; none is null.
nlohmann::ordered_json json_of(const Setting& value);

// A JSON object of a file as a table: members in their order, null as none. Values are positioned at the
// file. Throws UserError with the file.
Setting read_json_object(const std::string& path);

// A table as JSON, indented by two.
std::string json_object_text(const Setting& table);

}  // namespace tutti
