#pragma once

#include <string>
#include <vector>

namespace tutti {

// An IDX file of numbers of the type, with this header and these bytes.
inline std::string idx_text(const std::vector<int>& sizes, const std::string& data, int type = 0x08) {
  std::string text{0, 0, static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const int size : sizes)
    for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(size >> shift);
  return text + data;
}

}  // namespace tutti
