#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/formats/event_file.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

// Event files that TensorBoard shows: composer.loggers.TensorboardLogger. A point's step is Composer's, the
// number of batches that were done. Each start writes a file of its own; one that goes on from a checkpoint
// tells TensorBoard to forget what earlier ones say of the batches that are done again.
class TensorboardLogger final : public LoggerDestination {
 public:
  struct Options {
    std::string log_dir;         // within the run's folder unless it begins with a slash
    int64_t flush_interval = 1;  // batches
    bool rank_zero_only = true;
  };

  // `warn`: is told what cannot be written; empty: standard error is.
  using Warn = std::function<void(const std::string& what)>;
  TensorboardLogger(Disk& disk, const Clock& clock, Options options, Warn warn = {})
      : disk_(disk), clock_(clock), options_(std::move(options)), warn_(std::move(warn)) {}

  std::string name() const override { return "TensorboardLogger"; }
  bool rank_zero_only() const override { return options_.rank_zero_only; }
  bool durable() const override { return true; }
  void open(const LogStart& start) override;
  void log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_text(const LoggedText& text, const LogTime& time) override;
  void log_table(const LoggedTable& table, const LogTime& time) override;
  // In one picture, as a grid; a mask in another, "Images/Train/prediction". They go to the disk at once.
  void log_images(const LoggedImages& images, const LogTime& time) override;
  void step_end(const LogTime&) override { ++unflushed_; }
  void flush(bool sync) override;
  bool finish(bool late) override;

 private:
  std::string new_path(const std::string& folder) const;
  void write(bool sync);
  void warn(const std::string& what) const;
  void picture(const std::string& name, const LoggedImages& image, const LogTime& time);
  void leave_out_repeats(const LogTime& time);
  double now_s() const { return 1e-3 * static_cast<double>(clock_.unix_ms()); }

  Disk& disk_;
  const Clock& clock_;
  Options options_;
  Warn warn_;
  LogStart start_;
  std::vector<std::string> earlier_;  // files of earlier starts; until they are read
  std::optional<EventFile> file_;
  int64_t unflushed_ = 0;  // steps
  bool broken_ = false;    // the file could not be written; said once
};

}  // namespace tutti
