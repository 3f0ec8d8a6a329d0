#include "io/journal/journal_writer.h"

#include <mutex>
#include <utility>

#include "io/journal/growing_file.h"
#include "io/journal/journal_encoding.h"
#include "io/journal/journal_names.h"

namespace tutti {
namespace {

// Room after every record for the last one, JournalIncomplete.
constexpr uint64_t kSpareBytes = 256;

}  // namespace

// The file, and the state that encoding the next record needs. Callers hold the lock.
class JournalWriter::Impl {
 public:
  explicit Impl(const std::string& path) : path_(path), file_(path) {
    file_.append(journal_preamble(), kSpareBytes);
  }

  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }
  RecordEncoder& begin(JournalKind kind) {
    encoder_.begin(kind);
    return encoder_;
  }
  void append();  // writes the encoded record, unless the journal has ended
  void end() { ended_ = true; }
  uint32_t number_of(std::string_view name);
  int64_t ticks_since_last(TimePoint time);

  std::string incomplete() {
    const std::string error = file_.error();
    return error.empty() ? "" : path_ + ": " + error;
  }
  uint64_t bytes() const { return file_.size(); }

 private:
  std::string path_;
  mutable std::mutex mutex_;
  GrowingFile file_;
  RecordEncoder encoder_;
  JournalNames names_;
  int64_t last_ticks_ = 0;
  bool ended_ = false;
};

void JournalWriter::Impl::append() {
  if (ended_ || file_.append(encoder_.finish(file_.size()), kSpareBytes)) return;
  begin(JournalKind::kIncomplete).text(file_.error());
  file_.append(encoder_.finish(file_.size()), 0);
  end();
}

uint32_t JournalWriter::Impl::number_of(std::string_view name) {
  if (const auto number = names_.find(name)) return *number;
  names_.add(name);
  begin(JournalKind::kName).text(name);
  append();
  return *names_.find(name);
}

int64_t JournalWriter::Impl::ticks_since_last(TimePoint time) {
  const int64_t ticks = std::chrono::floor<JournalTick>(time.time_since_epoch()).count();
  return ticks - std::exchange(last_ticks_, ticks);
}

JournalWriter::JournalWriter(const std::string& path, std::string_view head_json)
    : impl_(std::make_unique<Impl>(path)) {
  impl_->begin(JournalKind::kHead).text(head_json);
  impl_->append();
}

JournalWriter::~JournalWriter() = default;

void JournalWriter::delivery(std::string_view to, std::string_view from, std::string_view message,
                             TimePoint time) {
  const auto lock = impl_->lock();
  const uint32_t to_number = impl_->number_of(to);
  const uint32_t from_number = impl_->number_of(from);
  const uint32_t message_number = impl_->number_of(message);
  RecordEncoder& record = impl_->begin(JournalKind::kDelivery);
  record.number(to_number);
  record.number(from_number);
  record.number(message_number);
  record.signed_number(impl_->ticks_since_last(time));
  impl_->append();
}

void JournalWriter::event(const JournalEvent& event) {
  const auto lock = impl_->lock();
  const uint32_t actor = impl_->number_of(event.actor);
  const uint32_t kind = impl_->number_of(event.kind);
  RecordEncoder& record = impl_->begin(JournalKind::kEvent);
  record.number(actor);
  record.number(kind);
  record.signed_number(event.step);
  record.signed_number(event.detail);
  record.signed_number(impl_->ticks_since_last(event.time));
  impl_->append();
}

void JournalWriter::digest(std::string_view key, int64_t step, uint64_t value,
                           std::span<const uint16_t> parts) {
  const auto lock = impl_->lock();
  const uint32_t number = impl_->number_of(key);
  RecordEncoder& record = impl_->begin(JournalKind::kDigest);
  record.number(number);
  record.signed_number(step);
  record.fixed(value, 8);
  record.number(parts.size());
  for (const uint16_t part : parts) record.fixed(part, 2);
  impl_->append();
}

void JournalWriter::parts(std::string_view key, const std::vector<std::string>& names) {
  const auto lock = impl_->lock();
  const uint32_t number = impl_->number_of(key);
  RecordEncoder& record = impl_->begin(JournalKind::kParts);
  record.number(number);
  record.number(names.size());
  for (const std::string& name : names) record.text(name);
  impl_->append();
}

void JournalWriter::input(std::string_view what, std::span<const std::byte> bytes) {
  const auto lock = impl_->lock();
  const uint32_t number = impl_->number_of(what);
  RecordEncoder& record = impl_->begin(JournalKind::kInput);
  record.number(number);
  record.number(bytes.size());
  record.raw(bytes);
  impl_->append();
}

void JournalWriter::end(std::string_view text) {
  const auto lock = impl_->lock();
  impl_->begin(JournalKind::kEnd).text(text);
  impl_->append();
  impl_->end();
}

std::string JournalWriter::incomplete() const {
  const auto lock = impl_->lock();
  return impl_->incomplete();
}

uint64_t JournalWriter::bytes() const {
  const auto lock = impl_->lock();
  return impl_->bytes();
}

}  // namespace tutti
