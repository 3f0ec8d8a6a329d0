#include "data/streams/sample_stream.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "recipe/command_keys.h"
#include "runtime/process/process_watch.h"
#include "runtime/random.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr int64_t kOfDigest = 16;  // samples, a power of two

std::size_t mark_of(int64_t samples) {
  return static_cast<std::size_t>(std::countr_zero(static_cast<uint64_t>(samples)));
}

}  // namespace

void LeftOutRecords::note(int64_t record, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (record <= last_) return;
  last_ = record;
  if (count_++ == 0) first_ = why;
}

std::string LeftOutRecords::text() const {
  const std::lock_guard lock(mutex_);
  if (count_ == 0) return "";
  return std::to_string(count_) + ' ' + what_ + (count_ == 1 ? " was" : "s were") +
         " left out; the first: " + first_;
}

SampleStream::SampleStream(const Options& options, StartPass start)
    : options_(options), name_(command_name(options.command)), start_(std::move(start)) {
  options_.kept = std::max(options.kept, kOfDigest);  // those read now will be asked for
  size_ = options.epoch_samples;
  if (size_ > 0) {
    for (int64_t i = 0; i < kOfDigest && pass_size_ < 0; ++i) advance();
    return;
  }
  const auto began = std::chrono::steady_clock::now();
  count();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  size_ = pass_size_;
  advice_ = "the command was run once to count its samples, " + grouped(size_) + ", which took " +
            formatted("%.1f s; epoch_samples = ", took.count()) + std::to_string(size_) +
            " makes that needless";
}

void SampleStream::count() const {
  while (pass_size_ < 0) advance();
}

int64_t SampleStream::order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const {
  const int64_t first = epoch * size_;
  if (!shuffle) return first + position;
  const int64_t block = position / options_.shuffle_buffer, begin = block * options_.shuffle_buffer;
  const RandomKey draw =
      RandomKey(seed, "stream").fold_in(static_cast<uint64_t>(epoch)).fold_in(static_cast<uint64_t>(block));
  const auto samples = static_cast<uint64_t>(std::min(options_.shuffle_buffer, size_ - begin));
  return first + begin +
         static_cast<int64_t>(Permutation(samples, draw)(static_cast<uint64_t>(position - begin)));
}

StreamSamplePtr SampleStream::get(int64_t index) const {
  TUTTI_ASSERT(index >= 0, "sample " + std::to_string(index));
  const std::lock_guard lock(mutex_);
  if (index < first_ || index >= end()) {
    if (error_) std::rethrow_exception(error_);
    try {
      read_to(index);
    } catch (const UserError& error) {
      error_ = std::make_exception_ptr(StreamError(error.position(), error.message()));
      std::rethrow_exception(error_);
    } catch (...) {
      error_ = std::current_exception();
      throw;
    }
  }
  return window_[static_cast<std::size_t>(index - first_)];
}

// A resumed run may be stopped while it looks for its place, since it has trained nothing that would be lost.
void SampleStream::read_to(int64_t index) const {
  if (index < first_) seek(index);
  const bool resumes = !resumed_ && index - end() > options_.kept;
  while (index >= end()) {
    if (pass_size_ > 0 && index - end() > index % pass_size_) seek(index);
    if (resumes && stop_asked())
      throw OperatingError("stopped while the samples before those of the resumed run were read",
                           EndKind::kInterrupted);
    advance();
  }
  resumed_ |= resumes;
}

void SampleStream::seek(int64_t index) const {
  pass_.reset();
  window_.clear();
  first_ = pass_size_ > 0 ? index - index % pass_size_ : 0;
}

void SampleStream::advance() const {
  if (!pass_) {
    pass_ = start_();
    hash_ = std::make_unique<StreamedHash>();
    pass_first_ = end();
    ++starts_;
  }
  StreamSamplePtr sample = pass_->next();
  if (!sample) return end_pass();
  sample->add_to(*hash_);
  window_.push_back(std::move(sample));
  const int64_t samples = end() - pass_first_;
  if (std::has_single_bit(static_cast<uint64_t>(samples))) require_same(mark_of(samples), hash_->value());
  if (std::ssize(window_) <= options_.kept) return;
  window_.pop_front();
  ++first_;
}

void SampleStream::require_same(std::size_t place, uint64_t hash) const {
  if (place == hashes_.size()) hashes_.push_back(hash);
  if (hashes_[place] != hash)
    throw UserError({name_},
                    "the command's output changed: of its first " + std::to_string(int64_t{1} << place) +
                        " samples some are not those of an earlier run; it must write the same each time");
}

void SampleStream::end_pass() const {
  const int64_t samples = end() - pass_first_;
  const uint64_t hash = hash_->value();
  pass_.reset();
  if (samples == 0) throw UserError({name_}, "the command wrote no sample");
  if (pass_size_ < 0) {
    pass_size_ = samples;
    hash_of_all_ = hash;
  }
  if (samples != pass_size_ || hash != hash_of_all_)
    throw UserError({name_}, "the command's output changed: " + std::to_string(samples) + " samples, and " +
                                 std::to_string(pass_size_) + (samples == pass_size_ ? " others" : "") +
                                 " in an earlier run; it must write the same each time");
}

uint64_t SampleStream::digest() const {
  const std::lock_guard lock(mutex_);
  const std::size_t place = mark_of(kOfDigest);
  const uint64_t parts[] = {place < hashes_.size() ? hashes_[place] : hash_of_all_, options_.identity,
                            static_cast<uint64_t>(size_), static_cast<uint64_t>(options_.shuffle_buffer)};
  return XXH3_64bits(parts, sizeof parts);
}

int64_t SampleStream::starts() const {
  const std::lock_guard lock(mutex_);
  return starts_;
}

}  // namespace tutti
