#include "io/replaced_file.h"

#include <exception>
#include <span>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

// A file that is no link, or nothing.
bool may_be_replaced(const Disk& disk, const std::string& path) {
  return disk.replaceable(path) && !disk.is_link(path);
}

}  // namespace

FreshFile::FreshFile(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)), name_(path_) {
  if (!may_be_replaced(disk, path_)) return;
  name_ += ".new";
  if (!may_be_replaced(disk, name_))
    throw OperatingError(name_ + ": cannot create: something else than a file has this name");
}

FreshFile::~FreshFile() {
  if (committed_ || is_in_place()) return;
  try {
    disk_.remove_all(name_);
  } catch (const std::exception&) {  // the error that led here is the one to report
  }
}

void FreshFile::commit() {
  if (is_in_place()) return;
  disk_.rename(name_, path_);
  committed_ = true;
}

void replace_file(Disk& disk, const std::string& path, std::string_view bytes) {
  FreshFile fresh(disk, path);
  const auto file = disk.open(fresh.name(), /*truncate=*/true);
  file->append(std::as_bytes(std::span(bytes)));
  if (!fresh.is_in_place()) file->sync();
  file->close();
  fresh.commit();
}

}  // namespace tutti
