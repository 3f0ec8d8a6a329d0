#include "recipe/dotted_path.h"

#include <algorithm>

namespace tutti {

const Setting* setting_at(const Setting& table, const std::string& path) {
  const Setting* at = &table;
  for (std::size_t begin = 0; at && begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    at = at->is_table() ? at->find(path.substr(begin, end - begin)) : nullptr;
    begin = end + 1;
  }
  return at;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }  // npos + 1 is 0

}  // namespace tutti
