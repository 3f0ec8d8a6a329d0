#pragma once

#include <string>
#include <string_view>

#include "runtime/disk.h"

namespace tutti {

// Replaces a file by these bytes: readers never see a part of it, also if the process is killed. Throws
// OperatingError.
void replace_file(Disk& disk, const std::string& path, std::string_view bytes);

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
  void commit();  // once the file is closed; throws OperatingError

 private:
  Disk& disk_;
  std::string path_, name_;
  bool committed_ = false;
};

}  // namespace tutti
