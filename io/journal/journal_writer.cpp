#include "io/journal/journal_writer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

namespace tutti {
namespace {

// Growing beyond `ulimit -f` raises SIGXFSZ, which would end the process.
bool beyond_file_limit(uint64_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur;
}

}  // namespace

GrowingFile::GrowingFile(const std::string& path) {
  ::unlink(path.c_str());
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor_ < 0) error_ = errno;
}

GrowingFile::~GrowingFile() {
  if (descriptor_ < 0) return;
  if (!truncated() && ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0)
    error_ = errno;  // zeros remain at the end
  ::close(descriptor_);
}

bool GrowingFile::append(std::span<const uint8_t> bytes, uint64_t spare) {
  if (size_ + bytes.size() + spare > reserved_ && !extend(bytes.size() + spare)) return false;
  std::copy(bytes.begin(), bytes.end(), mapping_->data() + (size_ - mapped_from_));
  size_ += bytes.size();
  return true;
}

std::string GrowingFile::error() {
  if (truncated()) return "it was cut short while the run wrote it";
  if (mapping_ != nullptr && mapping_->detached()) return "it could no longer be written";
  return error_ == 0 ? "" : std::strerror(error_);
}

bool GrowingFile::truncated() {
  struct stat status {};
  if (!truncated_ && reserved_ > 0 && ::fstat(descriptor_, &status) == 0)
    truncated_ = static_cast<uint64_t>(status.st_size) < reserved_;
  if (truncated_) reserved_ = 0;
  return truncated_;
}

bool GrowingFile::extend(uint64_t bytes) {
  if (!error().empty()) return false;
  const uint64_t page = ::sysconf(_SC_PAGESIZE);
  const uint64_t from = size_ / page * page;
  const uint64_t end = (size_ + std::max(bytes, kReservedBytes) + page - 1) / page * page;
  error_ = reserve(end);
  if (error_ != 0) return false;
  auto mapping = std::make_unique<WritableMapping>(descriptor_, from, end - from);
  if (mapping->data() == nullptr) {
    error_ = errno;
    return false;
  }
  mapping_ = std::move(mapping);
  mapped_from_ = from;
  reserved_ = end;
  return true;
}

int GrowingFile::reserve(uint64_t end) {
  if (beyond_file_limit(end)) return EFBIG;
  int error = EINTR;
  while (error == EINTR) {
    error =
        ::posix_fallocate(descriptor_, static_cast<off_t>(reserved_), static_cast<off_t>(end - reserved_));
  }
  // Free the part that was allocated before the failure.
  if (error != 0 && ::ftruncate(descriptor_, static_cast<off_t>(reserved_)) != 0) return errno;
  return error;
}

namespace {

// Room after every record for the last one, JournalIncomplete.
constexpr uint64_t kSpareBytes = 256;

}  // namespace

JournalWriter::JournalWriter(const std::string& path, std::string_view head_json) : path_(path), file_(path) {
  file_.append(journal_preamble(), kSpareBytes);
  begin(JournalKind::kHead).text(head_json);
  append();
}

RecordEncoder& JournalWriter::begin(JournalKind kind) {
  encoder_.begin(kind);
  return encoder_;
}

void JournalWriter::append() {
  if (ended_ || file_.append(encoder_.finish(file_.size()), kSpareBytes)) return;
  begin(JournalKind::kIncomplete).text(file_.error());
  file_.append(encoder_.finish(file_.size()), 0);
  ended_ = true;
}

uint32_t JournalWriter::number_of(std::string_view name) {
  if (const auto number = names_.find(name)) return *number;
  names_.add(name);
  begin(JournalKind::kName).text(name);
  append();
  return *names_.find(name);
}

int64_t JournalWriter::ticks_since_last(TimePoint time) {
  const int64_t ticks = std::chrono::floor<JournalTick>(time.time_since_epoch()).count();
  return ticks - std::exchange(last_ticks_, ticks);
}

void JournalWriter::delivery(std::string_view to, std::string_view from, std::string_view message,
                             TimePoint time) {
  const std::lock_guard lock(mutex_);
  const uint32_t to_number = number_of(to);
  const uint32_t from_number = number_of(from);
  const uint32_t message_number = number_of(message);
  RecordEncoder& record = begin(JournalKind::kDelivery);
  record.number(to_number);
  record.number(from_number);
  record.number(message_number);
  record.signed_number(ticks_since_last(time));
  append();
}

void JournalWriter::event(const JournalEvent& event) {
  const std::lock_guard lock(mutex_);
  const uint32_t actor = number_of(event.actor);
  const uint32_t kind = number_of(event.kind);
  RecordEncoder& record = begin(JournalKind::kEvent);
  record.number(actor);
  record.number(kind);
  record.signed_number(event.step);
  record.signed_number(event.detail);
  record.signed_number(ticks_since_last(event.time));
  append();
}

void JournalWriter::digest(std::string_view key, int64_t step, uint64_t value,
                           std::span<const uint16_t> parts) {
  const std::lock_guard lock(mutex_);
  const uint32_t number = number_of(key);
  RecordEncoder& record = begin(JournalKind::kDigest);
  record.number(number);
  record.signed_number(step);
  record.fixed(value, 8);
  record.number(parts.size());
  for (const uint16_t part : parts) record.fixed(part, 2);
  append();
}

void JournalWriter::parts(std::string_view key, const std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  const uint32_t number = number_of(key);
  RecordEncoder& record = begin(JournalKind::kParts);
  record.number(number);
  record.number(names.size());
  for (const std::string& name : names) record.text(name);
  append();
}

void JournalWriter::input(std::string_view what, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  const uint32_t number = number_of(what);
  RecordEncoder& record = begin(JournalKind::kInput);
  record.number(number);
  record.number(bytes.size());
  record.raw(bytes);
  append();
}

void JournalWriter::end(std::string_view text) {
  const std::lock_guard lock(mutex_);
  begin(JournalKind::kEnd).text(text);
  append();
  ended_ = true;
}

std::string JournalWriter::incomplete() const {
  const std::lock_guard lock(mutex_);
  const std::string error = file_.error();
  return error.empty() ? "" : path_ + ": " + error;
}

uint64_t JournalWriter::bytes() const {
  const std::lock_guard lock(mutex_);
  return file_.size();
}

JournalRecorder::JournalRecorder(const std::string& path, const RecordedJob& job)
    : full_(job.level == JournalLevel::kFull), writer_(path, job.to_json()) {}

void JournalRecorder::record(const TraceEvent& event) {
  ring_.record(event);
  writer_.event({event.time, name(actor_of(event.kind)), name(event.kind), event.step, event.detail});
}

void JournalRecorder::delivered(const Delivery& delivery) {
  writer_.delivery(delivery.to, delivery.from, delivery.message, delivery.time);
}

void JournalRecorder::digest(const Digest& digest) {
  writer_.digest(digest.key, digest.step, digest.value, digest.parts);
}

void JournalRecorder::name_parts(std::string_view key, const std::vector<std::string>& names) {
  if (full_) writer_.parts(key, names);
}

double JournalRecorder::input(RecordedInput what, double measured) {
  writer_.input(name(what), std::as_bytes(std::span(&measured, 1)));
  return measured;
}

std::string JournalRecorder::input(RecordedInput what, std::string measured) {
  writer_.input(name(what), std::as_bytes(std::span(measured)));
  return measured;
}

void JournalRecorder::end(const RankEnd& end) { writer_.end(end_text(end)); }

}  // namespace tutti
