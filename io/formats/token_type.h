#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tutti {

// The type that the tokens of a file without a header seem to have, by its first bytes (little-endian):
// "int64" or "int32" if the upper halves of such numbers are those of tokens, else "uint16".
std::string likely_token_type(std::span<const uint8_t> head);

}  // namespace tutti
