#pragma once

#include <string>

namespace tutti {

// Writes the text to a new file. Throws UserError if the file exists, unless `overwrite`, or cannot be
// written.
void write_new(const std::string& path, const std::string& text, bool overwrite);

}  // namespace tutti
