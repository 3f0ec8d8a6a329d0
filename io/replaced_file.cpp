#include "io/replaced_file.h"

#include <exception>
#include <filesystem>
#include <span>
#include <utility>

namespace tutti {

void replace_file(Disk& disk, const std::string& path, std::string_view bytes) {
  const std::string fresh = path + ".new";
  const auto file = disk.open(fresh, /*truncate=*/true);
  file->append(std::as_bytes(std::span(bytes)));
  file->sync();
  file->close();
  disk.rename(fresh, path);
}

FreshFile::FreshFile(Disk& disk, std::string path)
    : disk_(disk), path_(std::move(path)), name_(path_) {
  if (disk.replaceable(path_) && !std::filesystem::is_symlink(path_)) name_ += ".new";
}

FreshFile::~FreshFile() {
  if (committed_ || name_ == path_) return;
  try {
    disk_.remove_all(name_);
  } catch (const std::exception&) {  // the error that led here is the one to report
  }
}

void FreshFile::commit() {
  if (name_ != path_) disk_.rename(name_, path_);
  committed_ = true;
}

}  // namespace tutti
