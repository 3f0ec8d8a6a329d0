#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/formats/wandb_file.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "training/loggers/logger_destination.h"
#include "training/loggers/options.h"

namespace tutti {

// Writes the folder of an offline run of Weights & Biases, for `wandb sync`: composer.loggers.WandBLogger. A
// row's step is Composer's: the number of finished batches. A resumed run continues the same folder.
class WandbLogger final : public LoggerDestination {
 public:
  using Options = WandbLoggerOptions;

  WandbLogger(Disk& disk, const Clock& clock, Options options, Warn warn)
      : disk_(disk), clock_(clock), options_(std::move(options)), warn_(std::move(warn)) {}

  std::string name() const override { return "WandBLogger"; }
  bool durable() const override { return true; }
  void open(const LogStart& start) override;
  void log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  // Texts and tables are pages of HTML, images are PNG files with masks.
  void log_text(const LoggedText& text, const LogTime& time) override;
  void log_table(const LoggedTable& table, const LogTime& time) override;
  void log_images(const LoggedImages& images, const LogTime& time) override;
  void step_end(const LogTime&) override { is_flushed_ = false; }
  void flush(bool sync) override;
  bool finish(bool late) override;

 private:
  void begin_folder(const LogStart& start, int64_t earliest_ms);
  void resume_folder(const LogStart& start);
  void begin_row(const LogTime& time);
  void end_row();
  void add(const std::string& name, const std::string& json);
  void log_machine(const LoggedMetrics& metrics);
  void log_page(const std::string& name, const std::string& body, const LogTime& time);
  void log_labels(const std::string& images, const LoggedMask& mask);
  std::string media_path(const std::string& kind, const std::string& name, const std::string& end) const;
  // Writes a file of the run for `wandb sync`; false, after a warning, if the disk fails.
  bool media(const std::string& path, const std::string& bytes);
  void save_row();
  void write(bool sync);
  void warn(const std::string& what);
  double runtime_s() const;
  std::string saved_row_path() const { return file_->path() + ".row"; }

  Disk& disk_;
  const Clock& clock_;
  Options options_;
  Warn warn_;
  std::string folder_;  // of the offline run
  std::unique_ptr<WandbFile> file_;
  TimePoint opened_;
  double earlier_s_ = 0;  // of earlier attempts
  std::optional<int64_t> step_;
  WandbValues row_, summary_;
  std::map<std::string, int32_t> labelled_;  // the last class of masks that has a name
  std::optional<TimePoint> stats_;           // of the last figures of the machine
  bool is_flushed_ = false;
  bool is_broken_ = false;  // a write failed and was reported
};

}  // namespace tutti
