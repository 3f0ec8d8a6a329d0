#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tutti {

// Guesses the type of the tokens of a file without a header from its first bytes (little-endian): "int64" or
// "int32" if the upper halves of such numbers fit tokens, else "uint16".
std::string likely_token_type(std::span<const uint8_t> head);

}  // namespace tutti
