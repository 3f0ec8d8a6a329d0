#pragma once

#include <string>
#include <string_view>

#include "runtime/disk.h"

namespace tutti {

// A file that is written under a name of its own, and gets its path once complete: a partial file never has
// the path. A file without commit is removed. A path that cannot be replaced, as of a device, is written in
// place; a link is refused.
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

// Replaces a file by these bytes, as FreshFile: readers never see a partial file, also if the process is
// killed. Throws OperatingError.
void replace_file(Disk& disk, const std::string& path, std::string_view bytes);

}  // namespace tutti
