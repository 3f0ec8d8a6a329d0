#pragma once

#include <string>
#include <string_view>

namespace tutti {

// Bytes as text of 64 characters and padding (RFC 4648, section 4).
std::string base64(std::string_view bytes);

}  // namespace tutti
