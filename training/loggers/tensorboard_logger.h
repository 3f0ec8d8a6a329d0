#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/formats/event_file.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/printable.h"
#include "training/loggers/logger_destination.h"
#include "training/loggers/options.h"

namespace tutti {

// Writes event files for TensorBoard: composer.loggers.TensorboardLogger. A point's step is Composer's: the
// number of finished batches. Each attempt writes a new file; a resumed run makes TensorBoard drop points
// of batches that will be repeated.
class TensorboardLogger final : public LoggerDestination {
 public:
  using Options = TensorboardLoggerOptions;

  // `warn` receives write failures; default: standard error.
  TensorboardLogger(Disk& disk, const Clock& clock, Options options, Warn warn = {})
      : disk_(disk),
        clock_(clock),
        options_(std::move(options)),
        warn_(warn ? std::move(warn) : Warn(print_warning)) {}

  std::string name() const override { return "TensorboardLogger"; }
  bool rank_zero_only() const override { return options_.rank_zero_only; }
  bool durable() const override { return true; }
  void open(const LogStart& start) override;
  void log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_text(const LoggedText& text, const LogTime& time) override;
  void log_table(const LoggedTable& table, const LogTime& time) override;
  // Images as one grid, each mask as a further grid ("Images/Train/prediction"). Written to the disk at once.
  void log_images(const LoggedImages& images, const LogTime& time) override;
  void step_end(const LogTime&) override { ++unflushed_; }
  void flush(bool sync) override;
  bool finish(bool late) override;

 private:
  std::string new_path(const std::string& folder) const;
  void write(bool sync);
  void write_image(const std::string& name, const LoggedImages& image, const LogTime& time);
  void skip_repeats(const LogTime& time);
  double now_s() const { return 1e-3 * static_cast<double>(clock_.unix_ms()); }

  Disk& disk_;
  const Clock& clock_;
  Options options_;
  Warn warn_;
  LogStart start_;
  std::vector<std::string> earlier_;  // files of earlier attempts, until read
  std::optional<EventFile> file_;
  int64_t unflushed_ = 0;  // steps
  bool broken_ = false;    // a write failed and was reported
};

}  // namespace tutti
