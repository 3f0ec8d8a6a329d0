#pragma once

#include <string>

#include "recipe/setting.h"

namespace tutti {

// Reads a YAML file with the line of every value. A plain text that reads as a number, true or false has that
// type; an empty text or null is none. References of OmegaConf, ${a.b}, are replaced by the named values.
// Other references (${oc.env:HOME}), and references without a value, stay as text. Throws UserError if the
// file cannot be read, is no YAML, or references go in a circle.
Setting read_yaml(const std::string& path);

// The same from text; `file` is the name in errors.
Setting parse_yaml(const std::string& yaml, const std::string& file);

}  // namespace tutti
