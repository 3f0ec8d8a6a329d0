#pragma once

#include <string>

namespace tutti {

// A guess at line `line` (from 1) of a text that is not TOML: "; did you mean true?" or "; texts stand in
// quotes: \"sgd\"". "" if there is no guess.
std::string toml_hint(const std::string& text, int line);

}  // namespace tutti
