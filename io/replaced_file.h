#pragma once

#include <string>
#include <string_view>

#include "runtime/disk.h"

namespace tutti {

// A file that is written under a name of its own, and gets its path when all is written: what is cut off
// never has the path. What is not committed is removed. A path that cannot be replaced, such as a device's,
// is written in place; a link is refused.
class FreshFile {
 public:
  FreshFile(Disk& disk, std::string path);
  ~FreshFile();
  FreshFile(const FreshFile&) = delete;
  FreshFile& operator=(const FreshFile&) = delete;

  const std::string& name() const { return name_; }
  bool is_in_place() const { return name_ == path_; }
  void commit();  // once the file is closed; throws OperatingError

 private:
  Disk& disk_;
  std::string path_, name_;
  bool committed_ = false;
};

// Replaces a file by these bytes, as FreshFile: readers never see a part of it, also if the process is
// killed. Throws OperatingError.
void replace_file(Disk& disk, const std::string& path, std::string_view bytes);

}  // namespace tutti
