#include "io/journal/journal_writer.h"

#include <mutex>
#include <utility>

#include "io/journal/growing_file.h"
#include "io/journal/journal_encoding.h"
#include "io/journal/journal_names.h"

namespace tutti {
namespace {

// Kept free behind every record, for the one that says that no more follow.
constexpr uint64_t kSpareBytes = 256;

}  // namespace

// The file and what its next record depends on; whoever uses it holds the lock.
class JournalWriter::Tape {
 public:
  explicit Tape(const std::string& path) : path_(path), file_(path) {
    file_.append(journal_preamble(), kSpareBytes);
  }

  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }
  RecordEncoder& begin(JournalKind kind) {
    encoder_.begin(kind);
    return encoder_;
  }
  void append();  // what was encoded; nothing once it has ended
  void end() { ended_ = true; }
  uint32_t number_of(std::string_view name);
  int64_t ticks_since_last(TimePoint time);

  std::string incomplete() {
    const std::string trouble = file_.trouble();
    return trouble.empty() ? "" : path_ + ": " + trouble;
  }
  uint64_t bytes() const { return file_.size(); }

 private:
  std::string path_;
  mutable std::mutex mutex_;
  GrowingFile file_;
  RecordEncoder encoder_;
  JournalNames names_;
  int64_t last_ticks_ = 0;
  bool ended_ = false;  // nothing follows
};

void JournalWriter::Tape::append() {
  if (ended_ || file_.append(encoder_.finish(file_.size()), kSpareBytes)) return;
  begin(JournalKind::kIncomplete).text(file_.trouble());
  file_.append(encoder_.finish(file_.size()), 0);
  end();
}

uint32_t JournalWriter::Tape::number_of(std::string_view name) {
  if (const auto number = names_.find(name)) return *number;
  names_.add(name);
  begin(JournalKind::kName).text(name);
  append();
  return *names_.find(name);
}

int64_t JournalWriter::Tape::ticks_since_last(TimePoint time) {
  const int64_t ticks = std::chrono::floor<JournalTick>(time.time_since_epoch()).count();
  return ticks - std::exchange(last_ticks_, ticks);
}

JournalWriter::JournalWriter(const std::string& path, std::string_view head_json)
    : tape_(std::make_unique<Tape>(path)) {
  tape_->begin(JournalKind::kHead).text(head_json);
  tape_->append();
}

JournalWriter::~JournalWriter() = default;

void JournalWriter::delivery(std::string_view to, std::string_view from, std::string_view message,
                             TimePoint time) {
  const auto lock = tape_->lock();
  const uint32_t to_number = tape_->number_of(to);
  const uint32_t from_number = tape_->number_of(from);
  const uint32_t message_number = tape_->number_of(message);
  RecordEncoder& record = tape_->begin(JournalKind::kDelivery);
  record.number(to_number);
  record.number(from_number);
  record.number(message_number);
  record.signed_number(tape_->ticks_since_last(time));
  tape_->append();
}

void JournalWriter::event(const JournalEvent& event) {
  const auto lock = tape_->lock();
  const uint32_t actor = tape_->number_of(event.actor);
  const uint32_t kind = tape_->number_of(event.kind);
  RecordEncoder& record = tape_->begin(JournalKind::kEvent);
  record.number(actor);
  record.number(kind);
  record.signed_number(event.step);
  record.signed_number(event.detail);
  record.signed_number(tape_->ticks_since_last(event.time));
  tape_->append();
}

void JournalWriter::digest(std::string_view key, int64_t step, uint64_t value,
                           std::span<const uint16_t> parts) {
  const auto lock = tape_->lock();
  const uint32_t number = tape_->number_of(key);
  RecordEncoder& record = tape_->begin(JournalKind::kDigest);
  record.number(number);
  record.signed_number(step);
  record.fixed(value, 8);
  record.number(parts.size());
  for (const uint16_t part : parts) record.fixed(part, 2);
  tape_->append();
}

void JournalWriter::parts(std::string_view key, const std::vector<std::string>& names) {
  const auto lock = tape_->lock();
  const uint32_t number = tape_->number_of(key);
  RecordEncoder& record = tape_->begin(JournalKind::kParts);
  record.number(number);
  record.number(names.size());
  for (const std::string& name : names) record.text(name);
  tape_->append();
}

void JournalWriter::input(std::string_view what, std::span<const std::byte> bytes) {
  const auto lock = tape_->lock();
  const uint32_t number = tape_->number_of(what);
  RecordEncoder& record = tape_->begin(JournalKind::kInput);
  record.number(number);
  record.number(bytes.size());
  record.raw(bytes);
  tape_->append();
}

void JournalWriter::end(std::string_view text) {
  const auto lock = tape_->lock();
  tape_->begin(JournalKind::kEnd).text(text);
  tape_->append();
  tape_->end();
}

std::string JournalWriter::incomplete() const {
  const auto lock = tape_->lock();
  return tape_->incomplete();
}

uint64_t JournalWriter::bytes() const {
  const auto lock = tape_->lock();
  return tape_->bytes();
}

}  // namespace tutti
