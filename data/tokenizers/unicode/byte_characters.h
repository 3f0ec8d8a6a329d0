#pragma once

#include <string>
#include <string_view>

namespace tutti {

// Appends the character that stands for a byte in vocabularies of ByteLevel (GPT-2's encoder.py).
void append_byte_character(std::string& text, unsigned char byte);
std::string byte_characters(std::string_view bytes);

}  // namespace tutti
