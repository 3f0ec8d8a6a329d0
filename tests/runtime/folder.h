#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace tutti {

// A fresh folder that goes with the object.
class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "tutti-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tutti
