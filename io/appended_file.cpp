#include "io/appended_file.h"

#include <filesystem>
#include <span>

namespace tutti {
namespace {

constexpr std::size_t kMostUnwritten = 1 << 20;  // bytes

}  // namespace

void AppendedFile::begin() { file_ = disk_.open(path_, /*truncate=*/true); }

void AppendedFile::resume(uint64_t bytes) {
  file_ = disk_.open(path_, /*truncate=*/false);
  written_ = bytes;
}

bool AppendedFile::has_room(std::size_t bytes) {
  const bool has_room = unwritten_.empty() || unwritten_.size() + bytes <= kMostUnwritten;
  dropped_ += has_room ? 0 : 1;
  return has_room;
}

// A failed append is overwritten by the next one, which begins with the same bytes.
void AppendedFile::flush(bool sync) {
  if (!unwritten_.empty()) file_->append(std::as_bytes(std::span(unwritten_)));
  written_ += unwritten_.size();
  unwritten_.clear();
  if (!sync) return;
  file_->sync();
  if (!name_synced_) disk_.sync_folder(std::filesystem::path(path_).parent_path());
  name_synced_ = true;
}

uint64_t AppendedFile::half_written() const {
  return unwritten_.empty() ? 0 : bytes_behind(disk_, path_, written_);
}

}  // namespace tutti
