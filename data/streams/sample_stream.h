#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {

// A sample of a command, before its readers' parallel work.
class StreamSample {
 public:
  virtual ~StreamSample() = default;
  virtual void add_to(StreamedHash& hash) const = 0;
};
using StreamSamplePtr = std::shared_ptr<const StreamSample>;

// The samples of a command that has been started.
class SamplePass {
 public:
  virtual ~SamplePass() = default;
  // The next one; null at the end. Throws UserError with the command's name.
  virtual StreamSamplePtr next() = 0;
};
using StartPass = std::function<std::unique_ptr<SamplePass>()>;

// The command failed, or its output cannot be read: no sample follows.
struct StreamError : UserError {
  using UserError::UserError;
};

// A command may never end: more records in a row without a sample, such as blank lines, are an error.
inline constexpr int64_t kMostFruitless = 1'000'000;

// Counts records that are left out, each once however often the command is started. Thread-safe.
class LeftOutRecords {
 public:
  explicit LeftOutRecords(std::string what) : what_(std::move(what)) {}

  static constexpr int64_t kMost = 1000;  // in a row: a command may never end

  void note(int64_t record, const std::string& why);
  std::string text() const;  // of Dataset::replaced

 private:
  std::string what_;  // "line"
  mutable std::mutex mutex_;
  int64_t last_ = -1;
  int64_t count_ = 0;
  std::string first_;
};

// Random access to samples that a command writes in order. The command is started again when its output has
// ended: sample i is the i-th of that endless sequence. The newest samples are kept; an older sample is found
// by starting the command anew, which must write the same each time. Thread-safe.
class SampleStream {
 public:
  struct Options {
    std::string command;
    int64_t epoch_samples = 0;  // 0: as many as the command writes, which are counted
    int64_t shuffle_buffer = 1000;
    int64_t kept = 1000;    // samples; 16 at least
    uint64_t identity = 0;  // a hash of all else that the samples depend on
  };

  // Starts the command and reads the first samples, or all samples to count. Throws UserError.
  SampleStream(const Options& options, StartPass start);

  int64_t size() const { return size_; }  // of an epoch
  // Epoch e has the samples from e * size() on, in blocks of shuffle_buffer samples that are shuffled.
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const;
  // Throws StreamError if the command fails, writes unreadable samples, or other samples than before; then
  // and from then on, but for samples that are still kept.
  StreamSamplePtr get(int64_t index) const;
  uint64_t digest() const;
  std::string advice() const { return advice_; }
  int64_t starts() const;  // of the command, so far

 private:
  void count() const;
  void read_to(int64_t index) const;
  void seek(int64_t index) const;
  void advance() const;
  void end_pass() const;
  void require_same(std::size_t place, uint64_t hash) const;
  int64_t end() const { return first_ + static_cast<int64_t>(window_.size()); }

  Options options_;
  std::string name_;  // of the command, in errors
  StartPass start_;
  int64_t size_ = 0;
  std::string advice_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::unique_ptr<SamplePass> pass_;
  mutable std::unique_ptr<StreamedHash> hash_;  // of the pass so far
  mutable int64_t pass_first_ = 0;              // its first sample
  mutable int64_t pass_size_ = -1;              // -1: not known yet
  mutable int64_t starts_ = 0;
  mutable bool resumed_ = false;  // the samples before a resumed run's are read
  mutable int64_t first_ = 0;     // sample of the window
  mutable std::deque<StreamSamplePtr> window_;
  // Hashes after 1, 2, 4, 8, ... samples of the passes so far, and of a whole pass.
  mutable std::vector<uint64_t> hashes_;
  mutable uint64_t hash_of_all_ = 0;
  mutable std::exception_ptr error_;
};

}  // namespace tutti
