#include "io/line_file.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <sstream>

#include "io/replaced_file.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"

namespace tutti {
namespace {

constexpr std::size_t kFlushBytes = 1 << 16;
constexpr std::size_t kMostUnwrittenText = 1 << 20;

}  // namespace

LineFile::LineFile(Disk& disk, std::string path, StepOf step_of, Warn warn)
    : disk_(disk), path_(std::move(path)), step_of_(std::move(step_of)), warn_(std::move(warn)) {}

std::vector<std::string> LineFile::resume(int64_t last_step) {
  require_replaceable();
  std::vector<std::string> kept = lines_until(last_step);
  beginning_ = "";
  for (const std::string& line : kept) *beginning_ += line + "\n";
  empty_ = kept.empty();
  flush();
  return kept;
}

void LineFile::begin() {
  require_replaceable();
  beginning_ = "";
  empty_ = moves_old_aside_ = true;
  flush();
}

void LineFile::set_aside() {
  if (disk_.exists(path_) && disk_.size(path_) > 0) {
    TUTTI_PROBE("metrics: the file of an earlier attempt is put aside");
    const std::filesystem::path path = path_;
    const std::string stem = (path.parent_path() / path.stem()).string();
    disk_.rename(path_, unused_path(disk_, stem + ".earlier", path.extension()));
  }
  moves_old_aside_ = false;
}

void LineFile::require_replaceable() const {
  if (!disk_.replaceable(path_))
    throw OperatingError(path_ + ": is a folder, a pipe or a device, and no file");
}

void LineFile::open() {
  if (moves_old_aside_) set_aside();
  replace_file(disk_, path_, *beginning_);
  name_synced_ = false;
  file_ = disk_.open(path_, /*truncate=*/false);
  written_ = beginning_->size();
  beginning_.reset();
}

std::vector<std::string> LineFile::lines_until(int64_t last_step) const {
  if (!disk_.exists(path_)) return {};
  const auto bytes = disk_.read(path_);
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::vector<std::string> kept;
  int64_t unreadable = 0;
  const bool is_torn = !bytes.empty() && bytes.back() != std::byte{'\n'};
  if (is_torn) TUTTI_PROBE("metrics: a torn line is cut off");
  for (std::string line; std::getline(lines, line) && !lines.eof();) {  // a torn line has no line break
    const int64_t step = step_of_(line);
    unreadable += step < 0;
    if (step > last_step) TUTTI_PROBE("metrics: lines of steps to be trained again are cut off");
    if (step >= 0 && step <= last_step) kept.push_back(line);
  }
  if (unreadable == 0) return kept;
  TUTTI_PROBE("metrics: an unreadable line is dropped");
  warn_(
      path_ + ": " + std::to_string(unreadable) +
      (unreadable == 1 ? " line cannot be read, and is dropped" : " lines cannot be read, and are dropped"));
  return kept;
}

// A failed append is overwritten by the next one, which begins with the same bytes.
void LineFile::append(const std::string& line) {
  empty_ = false;
  if (unwritten_.size() + line.size() >= kMostUnwrittenText) {
    ++dropped_;
  } else {
    unwritten_ += line + "\n";
  }
  if (unwritten_.size() >= kFlushBytes) flush();
}

void LineFile::flush(bool sync) {
  if (!beginning_ && (!file_ || (unwritten_.empty() && !sync))) return;
  try {
    if (beginning_) open();
    file_->append(std::as_bytes(std::span(unwritten_)));
    written_ += unwritten_.size();
    unwritten_.clear();
    if (sync) this->sync();
    if (broken_) TUTTI_PROBE("metrics: lines are written after a failed write");
    broken_ = false;
    warn_dropped();
  } catch (const OperatingError& error) {
    if (!file_)
      TUTTI_PROBE("metrics: the file cannot be opened");
    else
      TUTTI_PROBE("metrics: lines cannot be written");
    if (!broken_) warn_(error.what());
    broken_ = true;
  }
}

void LineFile::sync() {
  file_->sync();
  if (!name_synced_) disk_.sync_folder(std::filesystem::path(path_).parent_path());
  name_synced_ = true;
}

void LineFile::finish() {
  flush();
  if (!unwritten_.empty()) TUTTI_PROBE("metrics: the last lines cannot be written");
  dropped_ += unwritten_lines();
  unwritten_.clear();
  warn_dropped();
}

// A failed append may have written the first lines.
int64_t LineFile::unwritten_lines() const {
  const uint64_t there = file_ ? bytes_behind(disk_, path_, written_) : 0;
  const std::string_view rest = std::string_view(unwritten_).substr(std::min(there, unwritten_.size()));
  return std::count(rest.begin(), rest.end(), '\n');
}

void LineFile::warn_dropped() {
  if (dropped_ == 0) return;
  warn_(path_ + " lacks " + std::to_string(dropped_) + " lines, for which there was no room");
  dropped_ = 0;
}

}  // namespace tutti
