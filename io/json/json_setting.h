#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "recipe/setting.h"
#include "runtime/disk.h"

namespace tutti {

// A value as JSON; none is null.
nlohmann::ordered_json json_of(const Setting& value);

// A JSON object of a file as a table: members in their order, null as none. Values are positioned at the
// file. Throws UserError with the file.
Setting read_json_object(const std::string& path);

// A table as JSON, indented by two.
std::string json_object_text(const Setting& table);

// Replaces a file by that text: readers never see a partial file. Throws OperatingError.
void write_json_object(Disk& disk, const std::string& path, const Setting& table);

}  // namespace tutti
