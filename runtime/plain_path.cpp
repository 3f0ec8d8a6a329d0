#include "runtime/plain_path.h"

#include <filesystem>

namespace tutti {

std::string plain_path(const std::string& path) {
  std::string plain = std::filesystem::absolute(path).lexically_normal().string();
  if (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return plain;
}

bool lies_in(const std::string& path, const std::string& folder) {
  return std::filesystem::path(plain_path(path)).parent_path() == plain_path(folder);
}

}  // namespace tutti
