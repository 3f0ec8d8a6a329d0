#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tutti {

enum class TokenFormat { kBytes, kUint16, kInt32, kUint32, kInt64 };  // little-endian

std::string token_type_name(TokenFormat format);  // "uint8", "uint16", ...
std::size_t token_bytes(TokenFormat format);

// Guesses the type of the tokens of a file without a header from its first bytes: kInt64 or kInt32 if the
// upper halves of nearly all such numbers fit tokens, else kUint16.
TokenFormat likely_token_type(std::span<const uint8_t> head);

// Describes the numbers of a file without a likely type, with advice: floating point, big-endian, uint8, or
// bytes that are no numbers. "" otherwise.
std::string other_numbers(std::span<const uint8_t> head);

}  // namespace tutti
